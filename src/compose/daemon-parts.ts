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
import { ROUND_MS } from '../app/guards/observed.ts';
import { createGuardVerdicts, type GuardVerdicts } from '../app/guards/verdicts.ts';
import type { KnownDigests } from '../app/notifications/sent-digests.ts';
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

/** Grace period for running jobs, in real milliseconds. Jobs that are cut off leave pending writes, which the next daemon confirms. */
const STOP_GRACE_MS = 6_000;

/** Default intervals of the daemon's rounds, in real milliseconds. */
const RHYTHM: Rhythm = {
  inventoryMs: 30_000,
  resyncMs: 30_000,
  waitingMs: 60_000,
  rulesMs: 2_000,
  samplingMs: 1_000,
  guardsMs: ROUND_MS,
  wasteMs: 60_000,
  usageMs: 60_000,
};

export type Closer = () => Promise<void>;
export type ProcessTelemetry = ReturnType<typeof createTelemetry>;

export interface PartsOptions {
  settings: Settings;
  policies: PolicySet;
  /** The hash, or its beginning, of a policy set that need not be staged. */
  accept?: string | undefined;
  /** For tests: the decision version of another release. */
  decisionVersion?: number;
  clock?: Clock;
  newId?: NewId;
  /** The machine's time in milliseconds since the epoch, to be compared with the store clock. */
  machineMs?: () => number;
  rhythm?: Rhythm;
  onEvent?: (event: ComputeEvent) => void;
}

/** Parts of the process itself. */
interface ProcessParts {
  clock: Clock;
  /** Milliseconds since the epoch. */
  startedAtMs: number;
  newId: NewId;
  mode: Mode;
  outages: Outages;
  rhythm: Rhythm;
  runInBackground: RunInBackground;
  telemetry: ProcessTelemetry;
}

/** Adapters to other systems. */
interface AdapterParts {
  api: ControlApi;
  counters: ConnectionCounters;
  series: SeriesSources;
  /** How messages about outages name the engine of queue and store. */
  engineName: string;
  queue: JobQueue;
  sender: Sender;
  store: Store;
  storedTimes: StoredTimes;
  overrides: Overrides;
  /** True if a daemon of this group is known to have run on this machine before. */
  hasRunHere: boolean;
}

/** The parts of a daemon. Each module of the application declares those that it needs, as its `…Deps`. */
export interface DaemonParts extends ProcessParts, AdapterParts, Group {
  durations: OperationDurations;
  fleet: Fleet;
  guards: GuardVerdicts;
  knownDigests: KnownDigests;
  samples: Samples;
  scheduledBoundaries: Set<number>;
  slots: Slots;
  storeClock: StoreClock;
  rules: CurrentRules;
  sets: PolicySets;
  reportEvent: ReportEvent;
}

/** Opens all parts. Closers are added to `opened` immediately and in order, so that a failure can close what is open. */
export async function openParts(
  options: PartsOptions,
  telemetry: ProcessTelemetry,
  opened: Closer[],
  open: OpenAdapters = openAdapters,
): Promise<Result<DaemonParts>> {
  const { settings, policies, clock = systemClock(), newId = randomUUID, rhythm = RHYTHM } = options;
  const outages = createOutages(telemetry, clock);
  const runInBackground = createRunInBackground(telemetry);
  const processParts: ProcessParts = {
    clock,
    startedAtMs: clock.now(),
    newId,
    telemetry,
    outages,
    rhythm,
    runInBackground,
    mode: settings.mode,
  };
  const opening = await open(settings, processParts, opened);
  if (!opening.ok) return opening;
  const { openQueue, ...adapters } = opening.value;
  const { store } = adapters;
  const samples = createSamples();
  const rules = { current: compileRules(rulesOf(settings, policies)) };
  const fleet = createFleet({ clock, verified: rules.current.verified });
  // Opened before the queue, and so closed after it: jobs that are being stopped still produce history.
  const { onEvent } = options;
  const reportEvent = await openReportEvent({ store, clock, telemetry, rules, samples, onEvent }, opened);
  const { machineMs = () => Date.now() } = options;
  const storeClock = createStoreClock({ store, clock, machineMs, telemetry });
  const parts = {
    ...processParts,
    ...adapters,
    overrides: readByStoreTime(adapters.overrides, storeClock),
    storeClock,
    queue: openQueue(),
    durations: createOperationDurations(),
    fleet,
    guards: createGuardVerdicts(),
    knownDigests: { current: new Map() },
    samples,
    scheduledBoundaries: new Set<number>(),
    slots: createSlots({ store, clock, fleet }),
    rules,
    sets: createPolicySets(stagingOptions(options)),
    reportEvent,
  };
  const group = openGroup({ ...parts, isAlone: settings.queue.kind === 'embedded' });
  return { ok: true, value: { ...parts, ...group } };
}

/** Opens all adapters but the queue, which `openQueue` opens. */
export type OpenAdapters = (
  settings: Settings,
  processParts: ProcessParts,
  opened: Closer[],
) => Promise<Result<Omit<AdapterParts, 'queue'> & { openQueue(): JobQueue }>>;

const openAdapters: OpenAdapters = async (settings, processParts, opened) => {
  const { clock, newId, telemetry, outages } = processParts;
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
  return {
    ok: true,
    value: {
      api,
      counters,
      series,
      sender,
      store,
      storedTimes,
      engineName: engine.name,
      overrides,
      hasRunHere,
      openQueue: () => openQueueOn(engine, processParts, opened),
    },
  };
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

/** Reports events of computes to the log, the metrics, the history, and an optional listener. */
async function openReportEvent(
  deps: Pick<DaemonParts, 'clock' | 'telemetry' | 'samples' | 'rules' | 'store'> & { onEvent: PartsOptions['onEvent'] },
  opened: Closer[],
): Promise<ReportEvent> {
  const { store, clock, telemetry, rules, onEvent } = deps;
  const record = logEvents(telemetry);
  const history = recordHistory({ store, clock, rules, log: telemetry.log });
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
    /** True if the store serves this daemon only. */
    isAlone: boolean;
  };

/** This daemon's membership of its group. */
interface Group {
  /** The random name under which this daemon holds leases. */
  holder: string;
  leaderLease: LeaderLease;
  storeWatch: StoreWatch;
  /** Why this daemon may not write, if known. */
  blocked(): WriteBlock | undefined;
  /** The generation of the current policy set; undefined while this daemon may not write by it. */
  generation(): number | undefined;
  /** Must be called before each write. If the promise is rejected, nothing may be written either. */
  mayWrite(): Promise<WritePermission>;
}

function openGroup(deps: OpenGroupDeps): Group {
  const { sets } = deps;
  const holder = deps.newId();
  const blocked = () => cannotWrite(deps);
  const storeWatch = createStoreWatch({
    ...deps,
    holder,
    newestGeneration: () => sets.newest,
    ensureTriggers: () => ensureTriggers(deps),
  });
  return {
    holder,
    blocked,
    storeWatch,
    leaderLease: createLeaderLease({ ...deps, holder, blocked }),
    generation: () => sets.generation,
    mayWrite: () => checkWritePermission({ ...deps, storeWatch }),
  };
}
