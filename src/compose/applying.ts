import { randomUUID } from 'node:crypto';
import { systemClock } from '../adapters/clock/system-clock.ts';
import { createGroupBudget } from '../adapters/control-api/group-budget.ts';
import { limitsOf } from '../adapters/control-api/token-bucket.ts';
import { type Carried, type CarryOutOptions, carryOut } from '../app/carry-out.ts';
import type { Context } from '../app/context.ts';
import { createFleet } from '../app/fleet.ts';
import { createOperationDurations } from '../app/operation-durations.ts';
import { createOutages } from '../app/outages.ts';
import { createOverrides } from '../app/overrides.ts';
import { rememberEvents } from '../app/remember-events.ts';
import { createSlots } from '../app/slots.ts';
import type { PlannedCompute } from '../domain/plan-fleet.ts';
import type { PolicySet } from '../domain/policy.ts';
import type { Clock } from '../ports/clock.ts';
import { type JobCounts, type JobQueue, QUEUE_NAMES, type QueueName } from '../ports/job-queue.ts';
import type { Notifier } from '../ports/notifier.ts';
import type { Store } from '../ports/store.ts';
import type { Settings } from '../settings.ts';
import { readKeysAtStart } from './accounts.ts';
import { explainApiError, openControlApi } from './control-api.ts';
import { NO_METRICS } from './no-metrics.ts';
import { type Planning, planReading } from './planning.ts';
import { openStore, SILENT_LOG } from './stored-facts.ts';

const MOST_CLOCK_OFFSET_MS = 2_000;

type Opened<T> = { ok: true; value: T } | { ok: false; problem: string };
type Listeners = Pick<CarryOutOptions, 'signal' | 'onBegin' | 'onEnd'>;

/** A writer besides the daemons: with their leases, their store, and their part of the rate budget. */
export interface Applying {
  /** Reads the fleet and plans for now, as enforce mode would. */
  plan(): Promise<Opened<Planning>>;
  carryOut(planning: Planning, listeners: Listeners): Promise<Map<PlannedCompute, Carried>>;
  close(): Promise<void>;
}

/** Opens what writing needs: a key that may write, and the store, made if it is not there. Nothing is asked of the API yet. */
export async function openApplying(options: { settings: Settings; policies: PolicySet }): Promise<Opened<Applying>> {
  const { settings, policies } = options;
  const keys = readKeysAtStart(settings.accounts, 'write');
  if (!keys.ok) return keys;
  const opened = await openStore(settings);
  if (!opened.ok) return opened;
  const { engine, store } = opened.value;
  const budget = await createGroupBudget({ engine, limits: limitsOf(settings.apiRequestsPerMinute) });
  const api = openControlApi({ settings, purpose: 'write', hide: () => {}, metrics: NO_METRICS, budget });
  const memory = rememberEvents({
    ...{ store, log: SILENT_LOG, clock: systemClock() },
    setHash: () => policies.hash,
    revision: () => settings.revision,
  });
  const reading = { api, facts: new Map(), explain: explainApiError.bind(undefined, settings) };
  return {
    ok: true,
    value: {
      plan: () => planReading({ settings, policies, mode: 'enforce', reading, store, notes: [] }),
      carryOut: (planning, listeners) =>
        carryOut({
          context: contextOf({ settings, api, store, notify: memory.remember }, planning),
          ...planning,
          ...listeners,
        }),
      async close() {
        await memory.close();
        await api.close();
        await opened.value.close();
      },
    },
  };
}

function contextOf(
  { settings, api, store, notify }: { settings: Settings; notify: Notifier } & Pick<Context, 'api' | 'store'>,
  { policies, situation }: Planning,
): Context {
  const clock = systemClock();
  const telemetry = { log: SILENT_LOG, metrics: NO_METRICS };
  return {
    ...{ clock, api, store, telemetry, policies, queue: NO_QUEUE },
    notify,
    fleet: createFleet({ clock }),
    outages: createOutages(telemetry),
    scheduledBoundaries: new Set(),
    slots: createSlots(() => clock.now()),
    durations: createOperationDurations(),
    overrides: createOverrides(),
    samples: knownSamples(situation.connections),
    disruption: settings.disruption,
    manualChanges: settings.manualChanges,
    profiles: situation.profiles,
    revision: settings.revision,
    mayWrite: () => leaveByClock(store, clock),
    mode: 'enforce',
    rhythm: { inventoryMs: 0, keeperMs: 0, waitingMs: 0, rulesMs: 0, samplingMs: 0 },
    holder: randomUUID(),
  };
}

/** What the plan was made of; whoever carries it out counts nobody. */
function knownSamples(known: Planning['situation']['connections']): Context['samples'] {
  return { historyOf: (computeId) => known?.get(computeId) ?? new Map(), put: () => {}, keepOnly: () => {} };
}

/** A clock that is off from the group's decides for another instant than the daemons do. */
async function leaveByClock(store: Store, clock: Clock): ReturnType<Context['mayWrite']> {
  const offMs = Math.abs((await store.timeMs()) - clock.now());
  if (offMs <= MOST_CLOCK_OFFSET_MS) return { ok: true };
  const message = `this machine's clock is ${Math.round(offMs / 1000)} s off from the store's`;
  return { ok: false, reason: { code: 'clock_off', message } };
}

const NO_JOBS = { waiting: 0, active: 0, delayed: 0, failed: 0 };

/** Whoever carries out a plan triggers nobody: the daemons look by themselves. */
const NO_QUEUE: JobQueue = {
  every: async () => {},
  addAt: async () => {},
  add: async () => {},
  delayedIds: async () => [],
  remove: async () => {},
  counts: async () => Object.fromEntries(QUEUE_NAMES.map((name) => [name, NO_JOBS])) as Record<QueueName, JobCounts>,
  work: async () => {},
  rest: async () => {},
  resume: async () => {},
  close: async () => {},
};
