/** The composition root of the daemon: opens its parts and connects them. Other files of this folder do this for commands. */

import { randomBytes } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { simulatedClock } from '../adapters/clock/simulated-clock.ts';
import { forgetCachedFleet } from '../adapters/control-api/answer-cache.ts';
import { loadHttpClient } from '../adapters/control-api/http-client.ts';
import { openEngine } from '../adapters/engine/open-engine.ts';
import { withLogin } from '../adapters/http/login.ts';
import { startHttpServer } from '../adapters/http/server.ts';
import { createTokens, type Tokens } from '../adapters/http/tokens.ts';
import { createAuditFile } from '../adapters/store/audit-file.ts';
import { createTelemetry } from '../adapters/telemetry/telemetry.ts';
import { startAnnouncements } from '../app/announcements/announcements.ts';
import { createBoundaries } from '../app/boundaries/boundaries.ts';
import { createBoundaryReconciles } from '../app/boundaries/boundary-reconciles.ts';
import { startReadyRounds } from '../app/boundaries/ready-rounds.ts';
import { startSampling } from '../app/connections/sampler.ts';
import { type Daemon, type DaemonDeps, startDaemon } from '../app/daemon.ts';
import { adoptsSettled, evaluateCompute } from '../app/evaluate-project/evaluate.ts';
import { createInventory } from '../app/fleet/inventory.ts';
import { startKeyChecks } from '../app/fleet/key-checks.ts';
import { createListFacts } from '../app/fleet/list-facts.ts';
import { createSharedReadings } from '../app/fleet/stored-readings.ts';
import { createReadingsWriter, type ReadingsWriter, startWritingReadings } from '../app/fleet/write-readings.ts';
import { startLeaderRefresh } from '../app/group/leader-refresh.ts';
import { onlyAsLeader, withRightClock } from '../app/group/pause-queues.ts';
import { startGuardRounds } from '../app/guards/verdicts.ts';
import { startDelivery } from '../app/notifications/delivery.ts';
import { createFollowOperations } from '../app/operations/follow.ts';
import { type AuditCopying, startAuditExport } from '../app/operator/audit-export.ts';
import { createAuditWebhook } from '../app/operator/audit-webhook.ts';
import { daemonOperator } from '../app/operator/daemon-operator.ts';
import { startReporting } from '../app/operator/daemon-reports.ts';
import { computeSeries } from '../app/operator/fleet-metrics.ts';
import { checkReadiness } from '../app/operator/readiness.ts';
import { startWasteRounds } from '../app/recommend/waste-rounds.ts';
import { createReconcile } from '../app/reconcile/reconcile.ts';
import { startResync } from '../app/resync.ts';
import { exportPolicies } from '../app/rollout/activate.ts';
import { noteAges } from '../app/rollout/delayed-reading.ts';
import { startReloading } from '../app/rollout/reload.ts';
import { startUsageRounds } from '../app/usage/usage-rounds.ts';
import type { Result } from '../common/result.ts';
import { limitsOf } from '../domain/rate-budget/limits.ts';
import { holidaysOf } from '../policy/calendars/public-holidays.ts';
import { timerMs } from '../ports/clock.ts';
import type { ComputeEvent } from '../ports/compute-events.ts';
import type { RulesSource } from '../ports/rules.ts';
import type { Metrics } from '../ports/telemetry.ts';
import { type Settings, secretsOf } from '../settings/settings.ts';
import { purposeOf, readKeysAtStart } from './control-api.ts';
import { announce, removeDaemonFile } from './daemon-file.ts';
import { type Closer, type DaemonParts, openParts, type PartsOptions, type ProcessTelemetry } from './daemon-parts.ts';
import { explainApiError } from './explain-api-error.ts';
import { dumpForCommands } from './store-dump.ts';

const NEVER = new AbortController().signal;
const STOPPED = { ok: false, problem: 'stopped while it started' } as const;

/** How long a stop waits for a part of the start that can't be aborted, in real milliseconds. */
const GIVE_UP_MS = 1_000;

/** Returns the result of the work, or {@link STOPPED} shortly after the signal aborts. */
async function orStopped<T>(work: Promise<T>, signal: AbortSignal): Promise<T | typeof STOPPED> {
  // During a start, every read adds a listener.
  setMaxListeners(0, signal);
  let timer: NodeJS.Timeout | undefined;
  let onAbort = () => {};
  const stopped = new Promise<typeof STOPPED>((resolve) => {
    onAbort = () => {
      timer = setTimeout(() => resolve(STOPPED), GIVE_UP_MS);
    };
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) onAbort();
  });
  try {
    return await Promise.race([work, stopped]);
  } finally {
    signal.removeEventListener('abort', onAbort);
    clearTimeout(timer);
  }
}

export type DaemonEvent = ComputeEvent;

/** A clock that runs by a table of (real, simulated) instants, for the demo and tests. */
export const clockByTable = simulatedClock;

/** The limit of a stop, in real milliseconds. */
const STOP_MS = 9_000;

/** Logged when a stop begins. */
const STOPPING = 'stopping: writes in progress are finished, the next start continues the rest';

const STARTING = { ready: false, checks: [{ name: 'start', ok: false, message: 'starting' }] };

export interface RunOptions extends PartsOptions {
  version: string;
  /** Reads settings and policies again; without it they never change. */
  source?: RulesSource;
  /** The log's destination; standard output by default. */
  logTo?: NodeJS.WritableStream;
  /** Aborts the start. A running daemon is stopped by `stop`. */
  signal?: AbortSignal;
}

export interface RunningDaemon {
  /** The URL of its pages. */
  url: string;
  /** Reads settings and policies again, even if they seem unchanged. */
  reload(): Promise<void>;
  /** Stops gracefully, within 10 s. */
  stop(): Promise<void>;
}

/** Opens the parts of a daemon in order, and starts it. A failure closes the parts that were opened. */
export async function runDaemon(options: RunOptions): Promise<Result<RunningDaemon>> {
  const { signal = NEVER } = options;
  const opened: Closer[] = [];
  const closeAll = () => within(STOP_MS, closeInTurn(opened));
  const opening = openAll({ ...options, signal }, opened);
  try {
    const started = await orStopped(opening, signal);
    if (started.ok) return { ok: true, value: { ...started.value, stop: closeAll } };
    await closeAll();
    return started;
  } catch (error) {
    await closeAll();
    if (signal.aborted) return STOPPED;
    throw error;
  } finally {
    // An engine may still open after the stop no longer waits for it.
    if (signal.aborted) void opening.catch(() => undefined).then(() => closeInTurn(opened));
  }
}

/** Opens and closes an engine, so that it creates its files or tables. */
export async function prepareEngine({ url, group }: { url: string; group: string }): Promise<Result<undefined>> {
  const { log } = createTelemetry({ level: 'error', version: '', secrets: [url] });
  const opening = await openEngine({ url, group, log });
  if (!opening.ok) return { ok: false, problem: opening.error.message };
  await opening.engine.close();
  return { ok: true, value: undefined };
}

/** Closes in reverse order. Failures are ignored, so that everything is closed. */
async function closeInTurn(opened: Closer[]): Promise<void> {
  for (const close of opened.splice(0).reverse()) await close().catch(() => undefined);
}

/** Resolves when the work is done, or after a timeout in real milliseconds. */
async function within(ms: number, work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, timerMs(ms));
  });
  await Promise.race([work, late]);
  clearTimeout(timer);
}

async function openAll(
  options: RunOptions & { signal: AbortSignal },
  opened: Closer[],
): Promise<Result<Omit<RunningDaemon, 'stop'>>> {
  const { settings, signal } = options;
  const keys = readKeysAtStart(settings.accounts, purposeOf(settings));
  if (!keys.ok) return keys;
  const telemetry = openTelemetry(options, keys.value);
  const opening = await openParts(options, telemetry, opened);
  signal.throwIfAborted();
  if (!opening.ok) return opening;
  const parts = opening.value;
  telemetry.seriesFrom(() => computeSeries(parts));
  let daemon: Daemon | undefined;
  await removeDaemonFile(settings.queue);
  await loadHttpClient();
  if (settings.mode === 'enforce') await forgetCachedFleet(settings.stateDir);
  const readiness = async () => (daemon ? checkReadiness(parts) : STARTING);
  const operator = daemonOperator({ ...parts, readiness, metricsText: telemetry.text });
  const localToken = randomBytes(32).toString('base64url');
  const tokens = openTokens(settings, telemetry, localToken);
  if (!tokens.ok) return tokens;
  const { listen, insecure, httpHosts: hosts } = settings;
  const http = await startHttpServer({
    listen,
    insecure,
    hosts,
    tokens: tokens.value,
    operator,
    log: telemetry.log,
    ...(settings.queue.kind === 'embedded' && { dump: () => dumpForCommands(parts.store) }),
  });
  if (!http.ok) return { ok: false, problem: http.error };
  opened.push(() => http.close());
  const started = await startParts(parts, { settings, source: options.source, signal, version: options.version });
  if (!started.ok) return started;
  daemon = started.value;
  opened.push(() => started.value.stop());
  telemetry.log.info({ event: 'ebb.listening', url: http.url }, `status page at ${http.url}`);
  opened.push(await announce(settings.queue, { url: http.url, token: localToken }));
  opened.push(async () => telemetry.log.info({ event: 'ebb.stop' }, STOPPING));
  return { ok: true, value: { url: http.url, reload: started.value.reload } };
}

function openTelemetry({ settings, version, logTo, policies }: RunOptions, keys: string[]): ProcessTelemetry {
  const telemetry = createTelemetry({
    level: settings.logLevel,
    ...(settings.logFormat && { pretty: settings.logFormat === 'text' }),
    version,
    secrets: [...secretsOf(settings), ...keys],
    perComputeMetrics: settings.perComputeMetrics,
    ...(logTo && { destination: logTo }),
  });
  declareFixedMetrics(telemetry.metrics, settings);
  exportPolicies(telemetry.metrics, policies.policies);
  return telemetry;
}

/** Opens the tokens of callers. A broken token file is an error only at the start. */
function openTokens(
  { token, tokenFile: file, login: provider }: Settings,
  { log, hide }: ProcessTelemetry,
  local: string,
): Result<Tokens> {
  const tokens = createTokens({ log, hide, local, file, shared: token?.reveal() });
  const problem = tokens.problem();
  if (problem !== undefined) return { ok: false, problem };
  return { ok: true, value: provider ? withLogin(tokens, { provider, log }) : tokens };
}

/** Sets the metrics that never change, and the metrics that are 1 until something fails. */
export function declareFixedMetrics(metrics: Metrics, settings: Settings): void {
  metrics.set('ebb_mode', { mode: 'observe' }, settings.mode === 'observe' ? 1 : 0);
  metrics.set('ebb_mode', { mode: 'enforce' }, settings.mode === 'enforce' ? 1 : 0);
  metrics.set('ebb_policy_load_success', {}, 1);
}

export async function startParts(
  parts: DaemonParts,
  options: { settings: Settings; source: RulesSource | undefined; signal: AbortSignal; version: string },
): Promise<Result<Daemon>> {
  const { settings, source, signal } = options;
  const accounts = settings.accounts.map(({ name }) => name);
  const { apiUrl } = settings;
  const readings = openReadings(parts, apiUrl);
  if (source) noteAges(parts.sets.changedAt, await source.writtenAgoMs(), parts.clock.monotonicMs());
  const started = await startDaemon(
    {
      ...parts,
      ...readings,
      handlers: handlersOf({ ...parts, ...readings }),
      background: backgroundOf({ ...parts, ...readings }, options),
      startReloading: () => startReloading(parts, source),
    },
    { apiUrl, accounts, queue: settings.queue.shown },
    signal,
  );
  if (!started.ok) return { ok: false, problem: explainApiError(settings, started.error) };
  return { ok: true, value: started.daemon };
}

/** Access to the facts about the fleet that daemons share through the store. */
type StoredFleet = Pick<DaemonDeps, 'listFacts' | 'sharedReadings'> & { writer: ReadingsWriter };

function openReadings(parts: DaemonParts, apiUrl: string): StoredFleet {
  const writer = createReadingsWriter({ ...parts, apiUrl });
  const sharedReadings = createSharedReadings({ ...parts, writer });
  const listFacts = createListFacts({ ...parts, apiUrl });
  return { writer, listFacts, ...(!parts.leaderLease.isAlone && { sharedReadings }) };
}

function handlersOf(parts: DaemonParts & StoredFleet): DaemonDeps['handlers'] {
  return {
    inventory: onlyAsLeader(
      parts,
      createInventory({ ...parts, adoptsSettled: (projectId) => adoptsSettled(parts, projectId) }),
    ),
    boundaries: withRightClock(parts, createBoundaries(parts)),
    crossings: withRightClock(parts, createBoundaryReconciles(parts)),
    reconcile: withRightClock(parts, createReconcile(parts)),
    operations: withRightClock(parts, createFollowOperations(parts)),
  };
}

function backgroundOf(
  parts: DaemonParts & StoredFleet,
  { settings, version }: { settings: Settings; version: string },
): DaemonDeps['background'] {
  const { accounts } = settings;
  const limits = limitsOf(settings.apiRequestsPerMinute, settings.apiReserve);
  return [
    () => startUsageRounds({ ...parts, accounts }),
    () => startReadyRounds({ ...parts, limits }),
    () => startWasteRounds({ ...parts, holidaysOf }),
    () => startResync(parts),
    () => startWritingReadings(parts),
    () => startAnnouncements(parts),
    () => startDelivery(parts),
    () => startSampling(parts),
    () => startGuardRounds({ ...parts, evaluate: (subject) => evaluateCompute(parts, subject) }),
    () => startLeaderRefresh(parts),
    () => startReporting({ ...parts, version, readiness: () => checkReadiness(parts) }),
    () => startKeyChecks(parts),
    ...auditCopies(parts, settings).map((copy) => () => startAuditExport(parts, copy)),
  ];
}

function auditCopies(parts: DaemonParts, { audit: { file, webhook } }: Settings): AuditCopying[] {
  const copies: AuditCopying[] = [];
  if (file !== undefined)
    copies.push({ task: 'audit_export', to: createAuditFile({ path: file, now: () => parts.clock.now() }) });
  if (webhook) copies.push({ task: 'audit_webhook', to: createAuditWebhook(parts, webhook) });
  return copies;
}
