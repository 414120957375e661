/** The composition root: the only place where adapters meet the application. */
import { randomBytes, randomUUID } from 'node:crypto';
import { simulatedClock } from './adapters/clock/simulated-clock.ts';
import { systemClock } from './adapters/clock/system-clock.ts';
import { createGroupBudget } from './adapters/control-api/group-budget.ts';
import { limitsOf } from './adapters/control-api/token-bucket.ts';
import { openEngine } from './adapters/engine/open-engine.ts';
import { startHttpServer } from './adapters/http/server.ts';
import { createTokens, type Tokens } from './adapters/http/tokens.ts';
import { createJobQueue } from './adapters/queue/job-queue.ts';
import { createStore } from './adapters/store/create-store.ts';
import { createTelemetry } from './adapters/telemetry/telemetry.ts';
import type { DaemonContext, Rhythm } from './app/context.ts';
import { type Daemon, startDaemon } from './app/daemon.ts';
import { countDropped } from './app/dropped-connections.ts';
import { showPolicies } from './app/exchange-rules.ts';
import { createFleet } from './app/fleet.ts';
import { createFleetLease } from './app/fleet-lease.ts';
import { computeSeries } from './app/fleet-metrics.ts';
import { createGroupTime } from './app/group-time.ts';
import { createOperationDurations } from './app/operation-durations.ts';
import { createOutages } from './app/outages.ts';
import { createOverrides } from './app/overrides.ts';
import { createPolicySets, leaveToWrite } from './app/policy-sets.ts';
import { recordEvents } from './app/record-events.ts';
import { rememberEvents } from './app/remember-events.ts';
import { createSamples } from './app/samples.ts';
import { createSlots } from './app/slots.ts';
import { createStoreWatch } from './app/store-watch.ts';
import { decidingBy } from './app/weigh-rules.ts';
import { readKeysAtStart } from './compose/accounts.ts';
import { openCounters } from './compose/connections.ts';
import { explainApiError, openControlApi } from './compose/control-api.ts';
import { announce, forgetOlder } from './compose/daemon-file.ts';
import { daemonOperator } from './compose/operator.ts';
import { rulesOf } from './compose/rules-from-files.ts';
import { isLoopbackHost } from './domain/loopback.ts';
import type { PolicySet } from './domain/policy.ts';
import type { Clock } from './ports/clock.ts';
import type { ComputeEvent } from './ports/notifier.ts';
import type { RulesSource } from './ports/rules.ts';
import type { Metrics } from './ports/telemetry.ts';
import type { KeyPurpose } from './settings/api-key.ts';
import { type Settings, secretsOf } from './settings.ts';

/** What happens to computes, for whoever tells it to people. */
export type DaemonEvent = ComputeEvent;

/** Time that runs by a table of (real, simulated) instants. Only the demo and tests give another clock than the system's. */
export const clockByTable = simulatedClock;

/** A whole stop takes at most so long, in real milliseconds. */
const STOP_MS = 9_000;

/** What runs may end for so long; then it is cut off, and its intents tell the successor. Real milliseconds. */
const STOP_GRACE_MS = 6_000;

/** How often a daemon looks by itself, in real milliseconds, unless it is told otherwise. */
const RHYTHM: Rhythm = {
  inventoryMs: 30_000,
  keeperMs: 30_000,
  waitingMs: 60_000,
  rulesMs: 2_000,
  samplingMs: 1_000,
};

export interface RunOptions {
  settings: Settings;
  policies: PolicySet;
  version: string;
  /** Where settings and policies are read from anew; without it they stay as they are. */
  source?: RulesSource;
  /** The hash of a policy set that may come into force whatever it disconnects; its beginning will do. */
  accept?: string | undefined;
  /** Only tests: also asks for approval where the control API is on this machine. */
  stageOnLoopback?: boolean;
  clock?: Clock;
  rhythm?: Rhythm;
  /** Where the log goes; standard output by default. */
  logTo?: NodeJS.WritableStream;
  onEvent?: (event: DaemonEvent) => void;
}

export interface RunningDaemon {
  /** Where its pages are. */
  url: string;
  /** Reads settings and policies anew, whether they have changed or not. */
  reload(): Promise<void>;
  /** Stops gracefully, within 10 s. */
  stop(): Promise<void>;
}

/** A daemon, or one line that says why there is none and what to do. */
export type Started = { ok: true; daemon: RunningDaemon } | { ok: false; problem: string };

/** Opens everything that a daemon needs, in order; if one part can't be had, what was opened is closed again. */
export async function runDaemon(options: RunOptions): Promise<Started> {
  const opened: Closer[] = [];
  const closeAll = () => within(STOP_MS, closeInTurn(opened));
  try {
    const started = await openAll(options, opened);
    if (started.ok) return { ok: true, daemon: { ...started.value, stop: closeAll } };
    await closeAll();
    return started;
  } catch (error) {
    await closeAll();
    throw error;
  }
}

/** Lets an engine make what it needs when it is first used, and closes it again. */
export async function prepareEngine({ url, group }: { url: string; group: string }): Promise<Opened<undefined>> {
  const { log } = createTelemetry({ level: 'error', version: '', secrets: [url] });
  const opening = await openEngine({ url, group, log });
  if (!opening.ok) return { ok: false, problem: opening.error.message };
  await opening.engine.close();
  return { ok: true, value: undefined };
}

/** Closes the last opened first; one that fails must not keep the others open. */
async function closeInTurn(opened: Closer[]): Promise<void> {
  for (const close of opened.splice(0).reverse()) await close().catch(() => undefined);
}

/** Resolves when the work is done, at the latest after so many real milliseconds: a stop must end. */
async function within(ms: number, work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([work, late]);
  clearTimeout(timer);
}

type Closer = () => Promise<void>;
type Opened<T> = { ok: true; value: T } | { ok: false; problem: string };
type ProcessTelemetry = ReturnType<typeof createTelemetry>;

async function openAll(options: RunOptions, opened: Closer[]): Promise<Opened<Omit<RunningDaemon, 'stop'>>> {
  const { settings } = options;
  const keys = readKeysAtStart(settings.accounts, purposeOf(settings));
  if (!keys.ok) return keys;
  const telemetry = openTelemetry(options, keys.value);
  const context = await openContext(options, telemetry, opened);
  if (!context.ok) return context;
  let daemon: Daemon | undefined;
  await forgetOlder(settings.queue);
  const operator = daemonOperator({ context: context.value, metricsText: telemetry.text, daemon: () => daemon });
  const local = randomBytes(32).toString('base64url');
  const tokens = openTokens(settings, telemetry, local);
  if (!tokens.ok) return tokens;
  const { listen, insecure } = settings;
  const http = await startHttpServer({ listen, insecure, tokens: tokens.value, operator, log: telemetry.log });
  if (!http.ok) return { ok: false, problem: http.error };
  opened.push(() => http.close());
  const accounts = settings.accounts.map(({ name }) => name);
  const surroundings = { apiUrl: settings.apiUrl, accounts, queue: settings.queue.shown };
  const started = await startDaemon(context.value, surroundings, options.source);
  if (!started.ok) return { ok: false, problem: explainApiError(settings, started.error) };
  daemon = started.daemon;
  opened.push(() => started.daemon.stop());
  opened.push(await announce(settings.queue, { url: http.url, token: local }));
  return { ok: true, value: { url: http.url, reload: started.daemon.reload } };
}

function openTelemetry({ settings, version, logTo, policies }: RunOptions, keys: string[]): ProcessTelemetry {
  const telemetry = createTelemetry({
    level: settings.logLevel,
    version,
    secrets: [...secretsOf(settings), ...keys],
    perComputeMetrics: settings.perComputeMetrics,
    ...(logTo && { destination: logTo }),
  });
  declareFixedMetrics(telemetry.metrics, settings);
  showPolicies(telemetry.metrics, policies.policies);
  return telemetry;
}

/** Opens the engine and what rests on it: everything that the application works with. */
async function openContext(
  options: RunOptions,
  telemetry: ProcessTelemetry,
  opened: Closer[],
): Promise<Opened<DaemonContext>> {
  const { settings, policies, clock = systemClock(), rhythm = RHYTHM, onEvent } = options;
  const { log, metrics } = telemetry;
  const outages = createOutages(telemetry);
  const opening = await openEngine({ url: settings.queue.url.reveal(), group: settings.group, log });
  if (!opening.ok) return { ok: false, problem: opening.error.message };
  const { engine } = opening;
  opened.push(() => engine.close());
  engine.onStateChange(({ up, message }) => (up ? outages.up(engine.name) : outages.down(engine.name, message)));
  const api = openControlApi({
    ...{ settings, log, metrics },
    purpose: purposeOf(settings),
    hide: telemetry.hide,
    budget: await createGroupBudget({ engine, limits: limitsOf(settings.apiRequestsPerMinute) }),
  });
  opened.push(() => api.close());
  const store = await createStore({ engine, log });
  const memory = rememberEvents({
    ...{ store, log, clock },
    setHash: () => context.policies.set.hash,
    revision: () => context.revision,
  });
  opened.push(() => memory.close());
  const queue = createJobQueue({
    engine,
    clock,
    log,
    onFailed(name, job, error) {
      metrics.increment('ebb_job_failures_total', { queue: name });
      log.error({ event: 'ebb.job_failed', queue: name, job: job.id, err: error }, error.message);
    },
  });
  opened.push(() => queue.close(STOP_GRACE_MS));
  const counters = openCounters({ settings, hide: telemetry.hide, now: () => clock.now() });
  opened.push(() => counters.close());
  const record = recordEvents(telemetry);
  const context: DaemonContext = {
    ...{ clock, api, queue, telemetry, outages, rhythm },
    ...decidingBy(rulesOf(settings, policies)),
    ...{ store, storeWatch: createStoreWatch() },
    notify(event) {
      record(event);
      countDropped(context, event);
      memory.remember(event);
      onEvent?.(event);
    },
    ...{ fleet: createFleet({ clock }), fleetLease: createFleetLease({ isAlone: settings.queue.kind === 'embedded' }) },
    scheduledBoundaries: new Set(),
    slots: createSlots(() => clock.now()),
    durations: createOperationDurations(),
    overrides: createOverrides(),
    ...{ samples: createSamples(), counters },
    sets: createPolicySets(stagingOptions(options)),
    groupTime: createGroupTime({ store, clock, machineMs: () => Date.now(), telemetry }),
    mayWrite: () => leaveToWrite(context),
    mode: settings.mode,
    holder: randomUUID(),
  };
  telemetry.seriesFrom(() => computeSeries(context));
  return { ok: true, value: context };
}

function stagingOptions({ settings, accept, stageOnLoopback = false }: RunOptions) {
  return { stages: stageOnLoopback || !isLoopbackHost(new URL(settings.apiUrl).hostname), accepted: accept };
}

function purposeOf({ mode }: Settings): KeyPurpose {
  return mode === 'enforce' ? 'write' : 'read';
}

/** Who may tell the daemon something. A file of tokens that is broken at the start is an error of the start. */
function openTokens(
  { token, tokenFile: file }: Settings,
  { log, hide }: ProcessTelemetry,
  local: string,
): Opened<Tokens> {
  const tokens = createTokens({ log, hide, local, file, shared: token?.reveal() });
  const problem = tokens.problem();
  return problem === undefined ? { ok: true, value: tokens } : { ok: false, problem };
}

function declareFixedMetrics(metrics: Metrics, settings: Settings): void {
  metrics.set('ebb_mode', { mode: 'observe' }, settings.mode === 'observe' ? 1 : 0);
  metrics.set('ebb_mode', { mode: 'enforce' }, settings.mode === 'enforce' ? 1 : 0);
  metrics.set('ebb_policy_load_success', {}, 1);
}
