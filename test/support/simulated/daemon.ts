/** A whole daemon in this process against an emulator, on time that a test drives: everything real but queue and store. */

import { join } from 'node:path';
import { Writable } from 'node:stream';
import { createReadingBudget } from '../../../src/adapters/control-api/group-budget.ts';
import { createTelemetry } from '../../../src/adapters/telemetry/telemetry.ts';
import { createStoredTimes } from '../../../src/app/group/stored-times.ts';
import { createOperator } from '../../../src/app/operator/create-operator.ts';
import { daemonOperator } from '../../../src/app/operator/daemon-operator.ts';
import { computeSeries } from '../../../src/app/operator/fleet-metrics.ts';
import { createOverrides } from '../../../src/app/overrides.ts';
import type { CurrentRules } from '../../../src/app/rules.ts';
import { requestReconciles } from '../../../src/app/triggers.ts';
import { openControlApi } from '../../../src/compose/control-api.ts';
import { type Closer, type OpenAdapters, openParts } from '../../../src/compose/daemon-parts.ts';
import { declareFixedMetrics, startParts } from '../../../src/compose/run-daemon.ts';
import { openSender } from '../../../src/compose/sources-and-receivers.ts';
import type { AccountFacts } from '../../../src/domain/compute/account-facts.ts';
import type { PolicySet } from '../../../src/domain/policy/policy.ts';
import type { ComputeRecord } from '../../../src/domain/records/compute-record.ts';
import type { FleetCompute } from '../../../src/emulator/fleet.ts';
import type { EmulatorOptions } from '../../../src/emulator/server.ts';
import { DEFAULT_POLICY_SETTINGS, loadPolicySet } from '../../../src/policy/load.ts';
import type { ComputeEvent } from '../../../src/ports/compute-events.ts';
import type { ConnectionCounters } from '../../../src/ports/connections.ts';
import type { ApiResult, ControlApi } from '../../../src/ports/control-api.ts';
import type { SeriesSource, SeriesSources } from '../../../src/ports/guards.ts';
import type { Operator } from '../../../src/ports/operator.ts';
import type { Sender } from '../../../src/ports/outbox.ts';
import type { RulesSource } from '../../../src/ports/rules.ts';
import type { Store } from '../../../src/ports/store.ts';
import { readSettings, type Settings } from '../../../src/settings/settings.ts';
import { REAL } from '../builders.ts';
import { makeFolder, type Platform, startTestPlatform } from '../platform.ts';
import { createSteppedClock, type SteppedClock } from './clock.ts';
import { createMemoryQueue } from './queue.ts';
import { createMemoryStore } from './store.ts';

const MINUTE_MS = 60_000;

/** A budget is of real time, of which a week takes a second. */
const PLENTY = { perMinute: 1_000_000, perRouteSecond: 1_000_000, jitterMs: 0 };

/** Seldom enough for weeks, often enough to find what is not told. */
export const RHYTHM = {
  ...{ inventoryMs: 120 * MINUTE_MS, resyncMs: 120 * MINUTE_MS, waitingMs: 30 * MINUTE_MS },
  ...{
    rulesMs: 120 * MINUTE_MS,
    samplingMs: 120 * MINUTE_MS,
    guardsMs: 120 * MINUTE_MS,
    wasteMs: 120 * MINUTE_MS,
    usageMs: 120 * MINUTE_MS,
  },
};

export interface SimulatedDaemon {
  clock: SteppedClock;
  platform: Platform;
  operator: Operator;
  /** What it decides by. */
  rules: CurrentRules;
  /** What happened to computes, with its instant. */
  events: { atMs: number; event: ComputeEvent }[];
  /** Asks for a reconcile of a project. */
  reconcile(projectId: string): Promise<void>;
  /** What is stored of a compute. */
  record(projectId: string, computeId: string): Promise<ComputeRecord | undefined>;
  store: Store;
  /** What /metrics answers. */
  metricsText(): Promise<string>;
  /** From now on the control API answers nothing, until it is false again. */
  setOutage(isOut: boolean): void;
  close(): Promise<void>;
}

export async function startSimulatedDaemon(options: {
  fromMs: number;
  computes: Record<string, Partial<FleetCompute>>;
  policies: string;
  /** Of the emulator; a fleet in it counts instead of `computes`. */
  platform?: Partial<EmulatorOptions>;
  onEvent?: (event: ComputeEvent) => void;
  /** `enforce` if absent. */
  mode?: 'enforce' | 'observe';
  /** What was measured in its account. */
  verified?: AccountFacts;
  /** Gets what the daemon logs, a line of JSON each; errors go nowhere otherwise. */
  log?: Writable;
  /** What the daemon is given instead of its store. */
  withStore?: (store: Store) => Store;
  /** The machine's own time, real milliseconds since the epoch; that of this machine if absent. */
  machineMs?: () => number;
  /** What guards ask, every 30 s; without it there are no guards. */
  series?: SeriesSource;
  /** How often it looks, at most every `shortestRoundMs`. */
  rhythm?: Partial<typeof RHYTHM> & { shortestRoundMs?: number };
  /** How often it lists the projects, by the time; instead of that of `rhythm`. */
  inventoryMs?: (nowMs: number) => number;
  settings?: (settings: Settings) => Settings;
  /** What the daemon is given instead of the set of its file. */
  withSet?: (set: PolicySet) => PolicySet;
  /** Gets what it reloads. */
  source?: RulesSource;
  counters?: ConnectionCounters;
  sender?: Sender;
}): Promise<SimulatedDaemon> {
  const calls = { pending: 0, isOut: false };
  const ofGuards = options.series ? { guardsMs: 30_000, shortestRoundMs: 30_000 } : {};
  const { shortestRoundMs, ...always } = { ...RHYTHM, ...ofGuards, ...options.rhythm };
  const rounds = shortestRoundMs === undefined ? {} : { shortestRoundMs };
  const clock = createSteppedClock(options.fromMs, () => calls.pending > 0, rounds);
  const rhythm = {
    ...always,
    get inventoryMs() {
      return options.inventoryMs?.(clock.now()) ?? always.inventoryMs;
    },
  };
  const platform = await startTestPlatform(options.computes, {
    ...{ clock, operationTimeMs: 2_000, availabilityCheckMs: 0, ...options.platform },
  });
  const folder = await makeFolder({ 'policy.yaml': options.policies });
  const opened: Closer[] = [() => folder.remove(), () => platform.close()];
  const env = { EBB_API_URL: platform.url, EBB_API_KEY: platform.apiKey, EBB_MODE: options.mode ?? 'enforce' };
  const read = readSettings({ env: { ...env, EBB_QUEUE_URL: `embedded:${folder.path}` }, cwd: folder.path });
  const loaded = await loadPolicySet({ paths: [join(folder.path, 'policy.yaml')], settings: DEFAULT_POLICY_SETTINGS });
  if (!read.ok || !loaded.ok) throw new Error(JSON.stringify([read, loaded]));
  const { verified = {} } = options;
  const accounts = read.settings.accounts.map((one) => ({ ...one, verified }));
  const settings = { ...read.settings, accounts, ...options.settings?.(read.settings) };
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const logged = { level: options.log ? 'info' : 'error', destination: options.log ?? nowhere } as const;
  const telemetry = createTelemetry({ ...logged, version: 'test', secrets: [] });
  declareFixedMetrics(telemetry.metrics, settings);
  const events: SimulatedDaemon['events'] = [];
  const outside: OpenAdapters = async () => {
    const budget = createReadingBudget({ alone: true, limits: PLENTY, clock: REAL.clock });
    const { metrics, hide } = telemetry;
    const client = openControlApi({ settings, metrics, hide, budget, purpose: 'write' });
    opened.push(() => client.close());
    const none = { of: () => Promise.reject() as never, close: async () => {} };
    const { counters = none } = options;
    const store = options.withStore?.(createMemoryStore(clock)) ?? createMemoryStore(clock);
    const storedTimes = createStoredTimes({ clock, telemetry });
    const api = observed(client, calls);
    const sender = options.sender ?? openSender({ settings, hide });
    opened.push(() => sender.close());
    return {
      ok: true,
      value: {
        api,
        counters,
        series: options.series ? waitedFor(options.series, calls) : none,
        sender,
        store,
        storedTimes,
        engineName: 'memory',
        overrides: createOverrides({ telemetry }),
        hasRunHere: false,
        openQueue: () => createMemoryQueue(clock),
      },
    };
  };
  const onEvent = (event: ComputeEvent) => {
    events.push({ atMs: clock.now(), event });
    options.onEvent?.(event);
  };
  const policies = options.withSet?.(loaded.set) ?? loaded.set;
  const { machineMs = () => Date.now() } = options;
  const own = { settings, policies, clock, machineMs, rhythm, onEvent };
  const parts = await openParts(own, telemetry, opened, outside);
  if (!parts.ok) throw new Error(parts.problem);
  const { store, queue } = parts.value;
  telemetry.seriesFrom(() => computeSeries(parts.value));
  const { metricsText } = daemonOperator({
    ...parts.value,
    ...{ readiness: async () => ({ ready: true, checks: [] }), metricsText: telemetry.text },
  });
  opened.push(() => queue.close(0));
  const starting = startParts(parts.value, {
    settings,
    source: options.source,
    signal: new AbortController().signal,
    version: '1.2.3',
  });
  await clock.runTo(options.fromMs + 1);
  const started = await starting;
  if (!started.ok) throw new Error(started.problem);
  opened.push(() => started.value.stop());
  const operator = createOperator({
    ...{ store, log: telemetry.log, holder: 'operator', ...REAL, now: async () => clock.now() },
    requestReconciles: (projectIds) => requestReconciles({ queue }, projectIds),
  });
  return {
    ...{ clock, platform, operator, events, store, rules: parts.value.rules },
    metricsText: async () => (await metricsText()).body,
    reconcile: (projectId) => requestReconciles({ queue }, [projectId]),
    record: async (projectId, computeId) => (await store.records(projectId)).get(computeId),
    setOutage(isOut) {
      calls.isOut = isOut;
    },
    async close() {
      for (const close of opened.reverse()) await close();
    },
  };
}

/** A source whose answers time waits for. */
function waitedFor({ latest, range }: SeriesSource, calls: { pending: number }): SeriesSources {
  const waited =
    <A extends unknown[], T>(call: (...args: A) => Promise<T>) =>
    async (...args: A): Promise<T> => {
      calls.pending += 1;
      return call(...args).finally(() => {
        calls.pending -= 1;
      });
    };
  const source = { latest: waited(latest), range: waited(range) };
  return { of: () => source, close: async () => undefined };
}

/** The client, with its calls counted while they wait for an answer; or none where the control API is out. */
function observed(client: ControlApi, calls: { pending: number; isOut: boolean }): ControlApi {
  const out: ApiResult<never> = {
    ok: false,
    error: { code: 'unavailable', route: 'any', message: 'is out', status: 503 },
  };
  const once =
    <A extends unknown[], T>(call: (...args: A) => Promise<ApiResult<T>>) =>
    async (...args: A): Promise<ApiResult<T>> => {
      if (calls.isOut) return out;
      calls.pending += 1;
      return call(...args).finally(() => {
        calls.pending -= 1;
      });
    };
  const pages = <A extends unknown[], T>(call: (...args: A) => AsyncIterable<ApiResult<T>>) =>
    async function* (...args: A): AsyncIterable<ApiResult<T>> {
      if (calls.isOut) {
        yield out;
        return;
      }
      calls.pending += 1;
      try {
        yield* call(...args);
      } finally {
        calls.pending -= 1;
      }
    };
  return {
    ...client,
    // Its limit is one of real time.
    usage: async () => ({
      ok: false,
      error: { code: 'not_found', route: 'any', message: 'not simulated', status: 404 },
    }),
    listProjects: pages(client.listProjects),
    listBranches: pages(client.listBranches),
    listOperations: pages(client.listOperations),
    listComputes: once(client.listComputes),
    operationsFrom: once(client.operationsFrom),
    updateCompute: once(client.updateCompute),
    restartCompute: once(client.restartCompute),
  };
}
