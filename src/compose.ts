/** The composition root: the only place where adapters meet the application. */
import { randomBytes } from 'node:crypto';
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
import { createUntilItWorks } from './app/background.ts';
import { countDropped } from './app/connections/dropped-connections.ts';
import { createSamples } from './app/connections/samples.ts';
import type { DaemonContext, Rhythm } from './app/context.ts';
import { type Daemon, startDaemon } from './app/daemon.ts';
import { createFleet } from './app/fleet/fleet.ts';
import { createStoreClock } from './app/group/clock-skew.ts';
import { createStoredTimes } from './app/group/stored-times.ts';
import { createOperationDurations } from './app/operations/durations.ts';
import { createSlots } from './app/operations/restart-slots.ts';
import { computeSeries } from './app/operator/fleet-metrics.ts';
import { showPolicies } from './app/rollout/activate.ts';
import { checkWritePermission, createPolicySets } from './app/rollout/write-permission.ts';
import { compileRules, withCurrentRules } from './app/rules.ts';
import { recordHistory } from './app/telemetry/history.ts';
import { logEvents } from './app/telemetry/log-events.ts';
import { createOutages } from './app/telemetry/outages.ts';
import { describeChain } from './common/errors.ts';
import { isLoopbackHost } from './common/loopback.ts';
import { readKeysAtStart } from './compose/accounts.ts';
import { openCounters } from './compose/connections.ts';
import { explainApiError, openControlApi } from './compose/control-api.ts';
import { announce, forgetOlder } from './compose/daemon-file.ts';
import { openGroup } from './compose/group.ts';
import { daemonOperator } from './compose/operator.ts';
import { rememberOverrides } from './compose/remembered-overrides.ts';
import { rulesOf } from './compose/rules-from-files.ts';
import { NEVER, orStopped, STOPPED } from './compose/stopped-start.ts';
import type { PolicySet } from './domain/policy/policy.ts';
import { type Clock, timerMs } from './ports/clock.ts';
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
  resyncMs: 30_000,
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
  /** Ends the start, wherever it is; a daemon that runs is stopped by its `stop`. */
  signal?: AbortSignal;
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
  const { signal = NEVER } = options;
  const opened: Closer[] = [];
  const closeAll = () => within(STOP_MS, closeInTurn(opened));
  const opening = openAll({ ...options, signal }, opened);
  try {
    const started = await orStopped(opening, signal);
    if (started.ok) return { ok: true, daemon: { ...started.value, stop: closeAll } };
    await closeAll();
    return started;
  } catch (error) {
    await closeAll();
    if (signal.aborted) return STOPPED;
    throw error;
  } finally {
    // What is opened after a stop was not waited for any longer is closed as well.
    if (signal.aborted) void opening.catch(() => undefined).then(() => closeInTurn(opened));
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
    timer = setTimeout(resolve, timerMs(ms));
  });
  await Promise.race([work, late]);
  clearTimeout(timer);
}

type Closer = () => Promise<void>;
type Opened<T> = { ok: true; value: T } | { ok: false; problem: string };
type ProcessTelemetry = ReturnType<typeof createTelemetry>;

async function openAll(
  options: RunOptions & { signal: AbortSignal },
  opened: Closer[],
): Promise<Opened<Omit<RunningDaemon, 'stop'>>> {
  const { settings, source: rules, signal } = options;
  const keys = readKeysAtStart(settings.accounts, purposeOf(settings));
  if (!keys.ok) return keys;
  const telemetry = openTelemetry(options, keys.value);
  const context = await openContext(options, telemetry, opened);
  signal.throwIfAborted();
  if (!context.ok) return context;
  let daemon: Daemon | undefined;
  await forgetOlder(settings.queue);
  const operator = daemonOperator({ context: context.value, metricsText: telemetry.text, daemon: () => daemon });
  const local = randomBytes(32).toString('base64url');
  const tokens = openTokens(settings, telemetry, local);
  if (!tokens.ok) return tokens;
  const { listen, insecure, httpHosts: hosts } = settings;
  const http = await startHttpServer({ listen, insecure, hosts, tokens: tokens.value, operator, log: telemetry.log });
  if (!http.ok) return { ok: false, problem: http.error };
  opened.push(() => http.close());
  const accounts = settings.accounts.map(({ name }) => name);
  const surroundings = { apiUrl: settings.apiUrl, accounts, queue: settings.queue.shown };
  const started = await startDaemon(context.value, surroundings, { rules, signal });
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
  const storedTimes = createStoredTimes({ clock, telemetry });
  const store = storedTimes.mending(await createStore({ engine, log }));
  const remembered = await rememberOverrides({ settings, telemetry, outages });
  if (!remembered.ok) return remembered;
  const { overrides, hasRun: hasRunHere } = remembered.value;
  const rules = { current: compileRules(rulesOf(settings, policies)) };
  const memory = recordHistory({
    ...{ store, log, clock },
    setHash: () => rules.current.policies.set.hash,
    revision: () => rules.current.revision,
  });
  opened.push(() => memory.close());
  const queue = createJobQueue({
    engine,
    clock,
    log,
    onFailed(name, job, error) {
      metrics.increment('ebb_job_failures_total', { queue: name });
      log.error({ event: 'ebb.job_failed', queue: name, job: job.id, err: error }, describeChain(error));
    },
  });
  opened.push(() => queue.close(STOP_GRACE_MS));
  const counters = openCounters({ settings, hide: telemetry.hide, now: () => clock.now() });
  opened.push(() => counters.close());
  const record = logEvents(telemetry);
  const fleet = createFleet({ clock });
  const context: DaemonContext = withCurrentRules(rules, {
    ...{ clock, api, queue, telemetry, outages, rhythm },
    ...{ store, storedTimes, engineName: engine.name, fleet },
    notify(event: ComputeEvent) {
      record(event);
      countDropped(context, event);
      memory.remember(event);
      onEvent?.(event);
    },
    ...openGroup(
      { isAlone: settings.queue.kind === 'embedded', store, clock, telemetry, fleet, overrides },
      () => context,
    ),
    scheduledBoundaries: new Set(),
    slots: createSlots({ store, clock, fleet }),
    durations: createOperationDurations(),
    ...{ overrides, hasRunHere, runInBackground: createUntilItWorks(telemetry) },
    ...{ samples: createSamples(), counters },
    sets: createPolicySets(stagingOptions(options)),
    storeClock: createStoreClock({ store, clock, machineMs: () => Date.now(), telemetry }),
    mayWrite: () => checkWritePermission(context),
    mode: settings.mode,
  });
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
