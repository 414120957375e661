import { randomUUID } from 'node:crypto';
import { systemClock } from '../adapters/clock/system-clock.ts';
import { createGroupBudget } from '../adapters/control-api/group-budget.ts';
import { openEngine } from '../adapters/engine/open-engine.ts';
import { createJobQueue } from '../adapters/queue/job-queue.ts';
import { createStore } from '../adapters/store/create-store.ts';
import type { createTelemetry } from '../adapters/telemetry/telemetry.ts';
import { createRunInBackground, type RunInBackground } from '../app/background.ts';
import { countDropped, createSamples, type Samples } from '../app/connections/samples.ts';
import type { Rhythm } from '../app/daemon.ts';
import type { Mode } from '../app/evaluate-project/evaluate.ts';
import { createFleet, type Fleet } from '../app/fleet/fleet.ts';
import { createStoreClock, type StoreClock } from '../app/group/clock-skew.ts';
import { createLeaderLease, type LeaderLease, type WriteBlock } from '../app/group/leader.ts';
import { createStoreWatch, type StoreWatch, type StoreWatchDeps } from '../app/group/store-loss.ts';
import { createStoredTimes, type StoredTimes } from '../app/group/stored-times.ts';
import { createGuardVerdicts, type GuardVerdicts } from '../app/guards/verdicts.ts';
import { createOperationDurations, type OperationDurations } from '../app/operations/follow.ts';
import { createSlots, type Slots } from '../app/operations/restart-slots.ts';
import { type Overrides, readByStoreTime } from '../app/overrides.ts';
import {
  cannotWrite,
  checkWritePermission,
  createPolicySets,
  type PolicySets,
  type SetsDeps,
  type WritePermission,
} from '../app/rollout/write-permission.ts';
import { type CurrentRules, compileRules } from '../app/rules.ts';
import { recordHistory, repeatsOf } from '../app/telemetry/history.ts';
import { logEvents } from '../app/telemetry/log-events.ts';
import { createOutages, type Outages } from '../app/telemetry/outages.ts';
import { type EnsureTriggersDeps, ensureTriggers } from '../app/triggers.ts';
import { describeChain } from '../common/errors.ts';
import { isLoopbackHost } from '../common/loopback.ts';
import type { Result } from '../common/result.ts';
import type { PolicySet } from '../domain/policy/policy.ts';
import { limitsOf } from '../domain/rate-budget/limits.ts';
import type { Clock, NewId } from '../ports/clock.ts';
import type { ComputeEvent, ReportEvent } from '../ports/compute-events.ts';
import type { ConnectionCounters } from '../ports/connections.ts';
import type { ControlApi } from '../ports/control-api.ts';
import type { Engine } from '../ports/engine.ts';
import type { SeriesSources } from '../ports/guards.ts';
import type { JobQueue } from '../ports/job-queue.ts';
import type { Sender } from '../ports/outbox.ts';
import type { Store } from '../ports/store.ts';
import type { Settings } from '../settings/settings.ts';
import { commandLineCaller } from './command-line-caller.ts';
import { openControlApi, purposeOf } from './control-api.ts';
import { rulesOf } from './rules-from-files.ts';
import { openCounters, openSender, openSeriesSources } from './sources-and-receivers.ts';
import { rememberOverrides } from './store.ts';

/** Grace period for running jobs; afterwards they are cut off, and their intents tell the successor. Real milliseconds. */
const STOP_GRACE_MS = 6_000;

/** Default intervals of the daemon's own rounds, in real milliseconds. */
const RHYTHM: Rhythm = {
  inventoryMs: 30_000,
  resyncMs: 30_000,
  waitingMs: 60_000,
  rulesMs: 2_000,
  samplingMs: 1_000,
  guardsMs: 30_000,
  wasteMs: 60_000,
  usageMs: 60_000,
};

export type Closer = () => Promise<void>;
export type ProcessTelemetry = ReturnType<typeof createTelemetry>;

export interface PartsOptions {
  settings: Settings;
  policies: PolicySet;
  /** The hash of a policy set that may become current whatever it disconnects; its beginning will do. */
  accept?: string | undefined;
  /** Only tests: that of another release. */
  decisionVersion?: number;
  clock?: Clock;
  newId?: NewId;
  /** The machine's time, real milliseconds since the epoch, which is compared with the store clock. */
  machineMs?: () => number;
  rhythm?: Rhythm;
  onEvent?: (event: ComputeEvent) => void;
}

/** Parts of the process itself. */
interface ProcessParts {
  clock: Clock;
  newId: NewId;
  mode: Mode;
  outages: Outages;
  rhythm: Rhythm;
  runInBackground: RunInBackground;
  telemetry: ProcessTelemetry;
}

/** Adapters to everything outside of the process. */
interface Outside {
  api: ControlApi;
  counters: ConnectionCounters;
  series: SeriesSources;
  /** Under which outages tell of what queue and store rest on. */
  engineName: string;
  queue: JobQueue;
  sender: Sender;
  store: Store;
  storedTimes: StoredTimes;
  overrides: Overrides;
  /** A daemon of this group is known to have run on this machine before. */
  hasRunHere: boolean;
}

/** The parts of a daemon. Each part of the application takes what it declares. */
export interface DaemonParts extends ProcessParts, Outside, Group {
  durations: OperationDurations;
  fleet: Fleet;
  guards: GuardVerdicts;
  samples: Samples;
  scheduledBoundaries: Set<number>;
  slots: Slots;
  rules: CurrentRules;
  sets: PolicySets;
  reportEvent: ReportEvent;
}

/** Opens the engine and what rests on it. What must be closed is added to `opened` at once, in order. */
export async function openParts(
  options: PartsOptions,
  telemetry: ProcessTelemetry,
  opened: Closer[],
  open: OpenOutside = openOutside,
): Promise<Result<DaemonParts>> {
  const { settings, policies, clock = systemClock(), newId = randomUUID, rhythm = RHYTHM } = options;
  const outages = createOutages(telemetry);
  const runInBackground = createRunInBackground(telemetry);
  const own: ProcessParts = { clock, newId, telemetry, outages, rhythm, runInBackground, mode: settings.mode };
  const opening = await open(settings, own, opened);
  if (!opening.ok) return opening;
  const { openQueue, ...outside } = opening.value;
  const { store } = outside;
  const samples = createSamples();
  const rules = { current: compileRules(rulesOf(settings, policies)) };
  const fleet = createFleet({ clock, verified: rules.current.verified });
  // Jobs that are being stopped still produce history: it is closed after the queue.
  const { onEvent } = options;
  const reportEvent = await openReportEvent({ store, clock, telemetry, rules, samples, onEvent }, opened);
  const { machineMs = () => Date.now() } = options;
  const storeClock = createStoreClock({ store, clock, machineMs, telemetry });
  const ungrouped = {
    ...own,
    ...outside,
    overrides: readByStoreTime(outside.overrides, storeClock),
    storeClock,
    queue: openQueue(),
    durations: createOperationDurations(),
    fleet,
    guards: createGuardVerdicts(),
    samples,
    scheduledBoundaries: new Set<number>(),
    slots: createSlots({ store, clock, fleet }),
    rules,
    sets: createPolicySets(stagingOptions(options)),
    reportEvent,
  };
  const group = openGroup({ ...ungrouped, isAlone: settings.queue.kind === 'embedded' });
  return { ok: true, value: { ...ungrouped, ...group } };
}

/** Opens what is outside of the process; the queue a little later than the rest. */
export type OpenOutside = (
  settings: Settings,
  own: ProcessParts,
  opened: Closer[],
) => Promise<Result<Omit<Outside, 'queue'> & { openQueue(): JobQueue }>>;

const openOutside: OpenOutside = async (settings, own, opened) => {
  const { clock, newId, telemetry, outages } = own;
  const { log, metrics, hide } = telemetry;
  const opening = await openEngine({ url: settings.queue.url.reveal(), group: settings.group, log });
  if (!opening.ok) return { ok: false, problem: opening.error.message };
  const { engine } = opening;
  opened.push(() => engine.close());
  engine.onStateChange(({ up, message }) => (up ? outages.up(engine.name) : outages.down(engine.name, message)));
  const limits = limitsOf(settings.apiRequestsPerMinute, settings.apiReserve);
  const budget = await createGroupBudget({ engine, limits, clock });
  const purpose = purposeOf(settings);
  const api = openControlApi({ settings, log, metrics, hide, budget, purpose, clock, newId });
  opened.push(() => api.close());
  const counters = openCounters({ settings, hide, now: () => clock.now() });
  opened.push(() => counters.close());
  const series = openSeriesSources({ settings, hide });
  opened.push(() => series.close());
  const storedTimes = createStoredTimes({ clock, telemetry });
  const store = storedTimes.correcting(await createStore({ engine, log }));
  const sender = openSender({ settings, hide });
  opened.push(() => sender.close());
  const remembered = await rememberOverrides({ settings, telemetry, outages });
  if (!remembered.ok) return remembered;
  const { overrides, hasRun: hasRunHere } = remembered.value;
  const outside = { api, counters, series, sender, store, storedTimes, engineName: engine.name, overrides, hasRunHere };
  return { ok: true, value: { ...outside, openQueue: () => openQueueOn(engine, own, opened) } };
};

function openQueueOn(engine: Engine, { clock, telemetry: { log, metrics } }: ProcessParts, opened: Closer[]): JobQueue {
  const queue = createJobQueue({
    engine,
    clock,
    log,
    onFailed(name, job, error) {
      metrics.increment('ebb_job_failures_total', { queue: name });
      const { projectId: project } = job.data;
      log.error({ event: 'ebb.job_failed', queue: name, job: job.id, project, err: error }, describeChain(error));
    },
  });
  opened.push(() => queue.close(STOP_GRACE_MS));
  return queue;
}

interface ReportEventDeps extends Pick<DaemonParts, 'clock' | 'telemetry' | 'samples' | 'rules' | 'store'> {
  onEvent: PartsOptions['onEvent'];
}

/** Reports what happens to computes to the log, the metrics, the history, and an optional listener. */
async function openReportEvent(deps: ReportEventDeps, opened: Closer[]): Promise<ReportEvent> {
  const { store, clock, telemetry, rules, onEvent } = deps;
  const record = logEvents(telemetry);
  const history = recordHistory({
    store,
    clock,
    rules,
    log: telemetry.log,
  });
  opened.push(() => history.close());
  const isRepeated = await repeatsOf(store);
  return (event) => {
    if (isRepeated(event)) return;
    record(event);
    countDropped(deps, event);
    history.remember(event);
    onEvent?.(event);
  };
}

function stagingOptions({ settings, accept, decisionVersion }: PartsOptions) {
  return {
    ...(decisionVersion !== undefined && { decisionVersion }),
    stages: settings.staging === 'always' || !isLoopbackHost(new URL(settings.apiUrl).hostname),
    accepted: accept === undefined ? undefined : { hash: accept, caller: commandLineCaller() },
  };
}

type OpenGroupDeps = Omit<StoreWatchDeps, 'holder' | 'newestGeneration' | 'ensureTriggers'> &
  EnsureTriggersDeps &
  SetsDeps & {
    newId: NewId;
    storeClock: StoreClock;
    mode: Mode;
    /** The store serves this daemon only. */
    isAlone: boolean;
  };

/** Membership of the group. */
interface Group {
  /** Names this daemon as the holder of a lease; random. */
  holder: string;
  leaderLease: LeaderLease;
  storeClock: StoreClock;
  storeWatch: StoreWatch;
  /** The last known reason for which this daemon may not write. */
  blocked(): WriteBlock | undefined;
  /** Number of the policy set that is decided by; undefined while nothing may be written by it. */
  generation(): number | undefined;
  /** Asked before each write. Rejects if that can't be told: then nothing may be written either. */
  mayWrite(): Promise<WritePermission>;
}

function openGroup(deps: OpenGroupDeps): Group {
  const { sets, storeClock } = deps;
  const holder = deps.newId();
  const blocked = () => cannotWrite({ sets, storeClock });
  const storeWatch = createStoreWatch({
    ...deps,
    holder,
    newestGeneration: () => sets.newest,
    ensureTriggers: () => ensureTriggers(deps),
  });
  return {
    holder,
    blocked,
    storeClock,
    storeWatch,
    leaderLease: createLeaderLease({ ...deps, holder, blocked }),
    generation: () => sets.generation,
    mayWrite: () => checkWritePermission({ ...deps, storeClock, storeWatch }),
  };
}
