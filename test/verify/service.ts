/** `ebb verify` against an emulator in this process, on time that goes on as soon as everybody waits. */

import type { Exchange, Transport, WireRequest } from '../../src/adapters/control-api/http-transport.ts';
import { createVerifyApi } from '../../src/adapters/control-api/verify-api.ts';
import { BOUNDS, putBack, type VerifyReport, verifyAccount } from '../../src/app/verify/verify.ts';
import { NO_METRICS } from '../../src/compose/control-api.ts';
import type { AccountFacts, FactName } from '../../src/domain/compute/account-facts.ts';
import type { FleetCompute } from '../../src/emulator/fleet.ts';
import { createEmulatedService, type EmulatedService, type EmulatorOptions } from '../../src/emulator/server.ts';
import type { Database, DatabaseSession, KeptSettings, SettingsKeeper } from '../../src/ports/verify.ts';
import { diceOf } from '../simulation/plan.ts';
import { createSteppedClock, type SteppedClock } from '../support/simulated/clock.ts';

export const START_MS = Date.parse('2026-11-23T09:00:00Z');
export const COMPUTE = 'ep-verify';
export const KEY = 'napi_key';
const DAY_MS = 86_400_000;
const OLDEST_PROJECT_MS = START_MS - 3 * DAY_MS;

export type Truth = Required<AccountFacts>;
export type Hook = (request: WireRequest, send: () => Promise<Exchange>) => Promise<Exchange>;

const direct: Hook = (_request, send) => send();

export interface Service {
  time: SteppedClock;
  emulator: EmulatedService;
  projectId: string;
  keeper: SettingsKeeper & { kept(): KeptSettings | undefined };
  /** What the compute has now. */
  settings(): Pick<FleetCompute, 'minCu' | 'maxCu' | 'suspendTimeoutSeconds'>;
  /** Lets time go on until the work has ended. */
  live<T>(work: Promise<T>): Promise<T>;
  verify(options?: {
    hook?: Hook;
    database?: boolean;
    signal?: AbortSignal;
    seed?: number;
  }): ReturnType<typeof verifyAccount>;
  restore(): Promise<boolean>;
}

/** An emulator in which the facts are these, with one project of three days. */
export function serviceOf(truth: Truth, compute: Partial<FleetCompute> = {}, plan?: 'free' | 'launch'): Service {
  const pending = { calls: 0 };
  const time = createSteppedClock(START_MS, () => pending.calls > 0, { shortestRoundMs: 1, quietTurns: 2 });
  const emulator = emulatorOf(truth, time, compute, plan);
  const projectId = 'calm-sea-1';
  let kept: KeptSettings | undefined;
  const keeper = {
    kept: () => kept,
    read: async () => kept,
    keep: async (settings: KeptSettings) => {
      kept = settings;
    },
    remove: async () => {
      kept = undefined;
    },
  };
  const apiOf = (hook: Hook, seed: number) =>
    createVerifyApi({
      baseUrl: 'https://api.emulated.test',
      accounts: [{ name: 'default', key: () => KEY }],
      metrics: NO_METRICS,
      clock: time,
      newId: () => 'request',
      random: diceOf(seed).uniform,
      transport: transportTo(emulator, hook, pending),
      bounds: { projectId, ...BOUNDS },
    });
  const service: Service = {
    ...{ time, emulator, projectId, keeper },
    settings() {
      const { minCu, maxCu, suspendTimeoutSeconds } = emulator.platform.world().computes.get(COMPUTE) ?? {};
      return { minCu, maxCu, suspendTimeoutSeconds } as ReturnType<Service['settings']>;
    },
    async live(work) {
      let isDone = false;
      const result = work.finally(() => {
        isDone = true;
      });
      result.catch(() => {});
      while (!isDone) await time.runTo(time.now() + 30_000);
      return result;
    },
    verify({ hook = direct, database = true, signal, seed = 1 } = {}) {
      const deps = {
        keeper,
        clock: time,
        account: 'default',
        projectId,
        signal: signal ?? new AbortController().signal,
      };
      const api = apiOf(hook, seed);
      const own = database ? { database: databaseOf(emulator, time) } : {};
      return service.live(verifyAccount({ api, ...deps, ...own }));
    },
    async restore() {
      const found = await keeper.read();
      const isBack = found ? await service.live(putBack({ api: apiOf(direct, 1), clock: time, kept: found })) : true;
      if (isBack) await keeper.remove();
      return isBack;
    },
  };
  return service;
}

/** The options of an emulator in which these are the facts. */
export function emulated(truth: Truth): Pick<EmulatorOptions, 'idlePatch' | 'projectUpdatedAt' | 'behaviours'> {
  return {
    idlePatch: truth.idle_resize,
    projectUpdatedAt: truth.list_updated_at,
    behaviours: {
      timeoutChange: truth.timeout_change,
      computeUpdatedAt: truth.compute_updated_at,
      lastActive: truth.last_active,
      restartDrops: truth.restart_drops,
      limits: truth.limits,
    },
  };
}

function emulatorOf(truth: Truth, time: SteppedClock, compute: Partial<FleetCompute>, plan?: 'free' | 'launch') {
  const usual = { type: 'read_write', minCu: 0.25, maxCu: 0.25, suspendTimeoutSeconds: 300, state: 'idle' } as const;
  const own = {
    ...usual,
    connections: 0,
    id: COMPUTE,
    branchId: 'br-main',
    createdAtMs: OLDEST_PROJECT_MS,
    ...compute,
  };
  const project = {
    id: 'calm-sea-1',
    name: 'ebb-verify-1',
    regionId: 'aws-eu-central-1',
    pgVersion: 17,
    computes: [own],
  };
  const emulator = createEmulatedService({
    fleet: { projects: [plan ? { ...project, plan } : project] },
    ...{ apiKey: KEY, seed: 7, clock: { ...time, now: () => Math.floor(time.now()) }, availabilityCheckMs: 0 },
    host: { monotonicMs: () => time.monotonicMs(), wait: (ms) => time.wait(ms), newId: () => 'of-the-platform' },
    ...emulated(truth),
  });
  // A fleet has no young projects.
  for (const made of emulator.platform.peek().projects.values()) made.createdAtMs = OLDEST_PROJECT_MS;
  return emulator;
}

function transportTo(emulator: EmulatedService, hook: Hook, pending: { calls: number }): Transport {
  return (request) =>
    hook(request, async () => {
      const { requestId } = request;
      pending.calls += 1;
      try {
        const { status, headers, text } = await emulator.answer(request);
        const { 'retry-after': retryAfter, 'x-ratelimit-limit': rateLimit } = headers;
        return {
          ...{ kind: 'answer', status, text, requestId },
          ...(retryAfter !== undefined && { retryAfter }),
          ...(rateLimit !== undefined && { rateLimit }),
        };
      } finally {
        pending.calls -= 1;
      }
    });
}

/** Sessions of clients in the world of the emulator. */
export function databaseOf({ platform }: EmulatedService, time: SteppedClock): Database {
  let sessions = 0;
  return {
    refusalFor: () => undefined,
    async connect(signal) {
      sessions += 1;
      const groupId = `session-${sessions}`;
      let state: 'waiting' | 'open' | 'ended' = 'waiting';
      const stop = platform.onEvents((events) => {
        for (const event of events)
          if (event.type === 'clients' && event.groupId === groupId)
            state = event.change === 'connected' ? 'open' : 'ended';
      });
      platform.run({ kind: 'connect', computeId: COMPUTE, connections: 1, reconnects: false, groupId });
      const isOpen = () => {
        platform.world();
        return state === 'open';
      };
      for (let waited = 0; !isOpen() && waited < 60; waited += 1) await time.wait(1_000, signal);
      const act = (doing: 'work' | 'rest' | 'leave') =>
        platform.run({ kind: 'change_clients', computeId: COMPUTE, groupId, doing });
      act('rest');
      const session: DatabaseSession = {
        isOpen,
        async use() {
          if (!isOpen()) throw new Error('terminating connection due to administrator command');
          act('work');
          act('rest');
        },
        work: () => void act('work'),
        async close() {
          if (state !== 'ended') act('leave');
          state = 'ended';
          stop();
        },
      };
      return session;
    },
  };
}

/** What was found, by fact: the value, or undefined where it was not observable. */
export function valuesOf({ facts }: VerifyReport): Partial<Record<FactName, string>> {
  return Object.fromEntries(facts.map(({ fact, observed }) => [fact, observed]));
}

export function reportOf(result: Awaited<ReturnType<typeof verifyAccount>>): VerifyReport {
  if (!result.ok) throw new Error(result.problem);
  return result.value;
}

/** A promise, and what resolves it. */
export function signalled(): { promise: Promise<void>; resolve: () => void } {
  let resolve = () => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve: () => resolve() };
}
