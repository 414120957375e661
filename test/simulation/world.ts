/** What all daemons of a simulation share: time, the platform, the store, the queue, the files in Git, and what people were told. */

import { createMemoryBudgets } from '../../src/adapters/control-api/group-budget.ts';
import { DEFAULT_RATE_LIMITS } from '../../src/domain/rate-budget/limits.ts';
import { createEmulatedService, type EmulatedService } from '../../src/emulator/server.ts';
import type { Store } from '../../src/ports/store.ts';
import { createSteppedClock, type SteppedClock } from '../support/simulated/clock.ts';
import { createMemoryBroker } from '../support/simulated/group-queue.ts';
import { createMemoryStore } from '../support/simulated/store.ts';
import type { SimHold } from './oracle.ts';
import type { Seen } from './outcome.ts';
import { type Dice, diceOf, type FaultKind, type Silence, type SimPlan, type StoreMoment } from './plan.ts';
import { FILES, type FileName, type SimFiles, type SimValues, textOf } from './policies.ts';

/** A trouble while it lasts. */
export interface ActiveFault {
  kind: FaultKind;
  daemon: number;
  projectId: string;
  untilMs: number;
  /** 0 to 1: how bad. */
  by: number;
}

/** A version of a file. */
interface Version {
  atMs: number;
  text: string;
  how: 'replaced' | 'in_place';
  /** Absent for a text that somebody has not finished. */
  policies?: SimFiles[FileName];
}

export interface SimFreezeOrder {
  id: string;
  /** All, if absent. */
  projectId?: string;
  acknowledgedAtMs: number;
  /** Among all calls and answers. */
  acknowledgedOrder: number;
  expiresAtMs: number;
  endedAtMs: number;
}

export interface AcknowledgedHold extends SimHold {
  acknowledgedAtMs: number;
  acknowledgedOrder: number;
  endedAtMs: number;
  /** Somebody was told that it is released. */
  isReleased?: true;
}

/** A change of a compute that no daemon of the simulation asked for. */
export interface PersonChange {
  atMs: number;
  computeId: string;
  values: SimValues;
}

/** What people said and did, as they know it. */
export interface People {
  holds: AcknowledgedHold[];
  freezes: SimFreezeOrder[];
  changes: PersonChange[];
  /** Computes of which nobody knows what counts: somebody has asked and got no answer, or not yet. */
  doubts: { computeId: string; untilMs: number }[];
  restores: { computeId: string; atMs: number }[];
  releases: { computeId: string; atMs: number }[];
  renames: { projectId: string; atMs: number; from: string; to: string }[];
  /** By compute, how many CU its clients need. */
  demands: Map<string, number>;
  /** Times in which the source of guards says nothing of a compute. */
  silences: { computeId: string; atMs: number; untilMs: number; how: Silence }[];
  /** Floors of guards that somebody has released, or has asked to. */
  guardReleases: { computeId: string; atMs: number }[];
  /** When somebody asked to approve a set. */
  approvals: number[];
  /** When somebody was told that a set is approved, by its hash. */
  approved: Map<string, number>;
  /** Times in which somebody asks one daemon after the other to read the files again. */
  reloads: { endedAtMs: number }[];
}

export interface World {
  plan: SimPlan;
  time: SteppedClock;
  /** For what ports do, apart from the dice of the plan: they depend on who asks, in which second, and how often in it. */
  diceFor(who: string): Dice;
  platform: EmulatedService;
  /** The store as it is now: another one after it came back empty. */
  store: { current: Store; madeAtMs: number; copyAt(atMs: number): Store };
  broker: ReturnType<typeof createMemoryBroker>;
  budgets: ReturnType<typeof createMemoryBudgets>;
  files: { versions: Record<FileName, Version[]>; save(name: FileName, version: Omit<Version, 'atMs'>): void };
  people: People;
  faults: ActiveFault[];
  faultsAt(kind: FaultKind, daemon?: number): ActiveFault | undefined;
  trace: string[];
  note(line: string): void;
  /** What must not be. */
  violations: { atMs: number; rule: string; what: string }[];
  violate(rule: string, what: string): void;
  /** What belongs to the outcome and is kept nowhere else. */
  seen: Seen;
  /** How often each port, gate and pair of troubles was reached. */
  reached: Map<string, number>;
  reach(what: string): void;
  newId(): string;
  /** Returns the next number of an order in which calls of daemons, and answers to people, come. */
  next(): number;
  /** Calls back just before a daemon's store has been asked so many times more, or after some seconds: there may be no daemon. */
  atCall(count: number, callback: (computeId?: string) => void, method?: StoreMoment): void;
  /** Called before each such call, with the compute of which it is; true if something happens just before it. */
  onCall(method: string, computeId: string): boolean;
  /** Calls that wait for something that is not time. */
  pending: number;
}

/** The longest wait for a call of a store, in milliseconds. */
const LATEST_CALL_MS = 8_000;

/** The longest wait for one that only guards make, which are rare; and the time that is then left before the quiet time, in milliseconds. */
const LATEST_OF_GUARDS_MS = 180_000;
const LEFT_MS = 30_000;
const OF_GUARDS: ReadonlySet<string | undefined> = new Set<StoreMoment>(['putWatch', 'putHarm', 'finishOutbox']);

export const projectId = (index: number) => `project-${index}`;
export const computeId = (project: number, index: number) => `ep-${project}-${index}`;

export function createWorld(plan: SimPlan): World {
  const trace: string[] = [];
  const violations: World['violations'] = [];
  const reached: World['reached'] = new Map();
  const faults: ActiveFault[] = [];
  let world = {} as World;
  const time = createSteppedClock(plan.startMs, () => world.pending > 0, { shortestRoundMs: 1, quietTurns: 1 });
  const sinceStart = () => ((time.now() - plan.startMs) / 1000).toFixed(3);
  let ids = 0;
  world = {
    ...{ plan, time, trace, violations, reached, faults, pending: 0 },
    seen: { writes: [], log: [], requests: [] },
    platform: platformOf(plan, time),
    store: createStores(time, plan),
    broker: createMemoryBroker(time),
    budgets: createMemoryBudgets({ limits: DEFAULT_RATE_LIMITS, assumesUnused: true, clock: time }),
    files: createFiles(plan, time),
    people: {
      holds: [],
      freezes: [],
      changes: [],
      doubts: [],
      restores: [],
      releases: [],
      renames: [],
      demands: new Map(
        plan.projects.flatMap(({ computes }, at) =>
          computes.map(({ demandCu }, index) => [computeId(at, index), demandCu] as const),
        ),
      ),
      silences: [],
      guardReleases: [],
      approvals: [],
      approved: new Map(),
      reloads: [],
    },
    faultsAt(kind, daemon) {
      // Asked several times at each call of a port: a loop is cheaper than a callback.
      for (const one of faults) {
        if (one.kind !== kind || one.untilMs <= time.now()) continue;
        if (daemon === undefined || one.daemon === daemon) return one;
      }
      return undefined;
    },
    note: (line) => void trace.push(`${sinceStart()} ${line}`),
    violate(rule, what) {
      trace.push(`${sinceStart()} VIOLATION ${rule}: ${what}`);
      violations.push({ atMs: time.now(), rule, what });
    },
    reach: (what) => void reached.set(what, (reached.get(what) ?? 0) + 1),
    ...createCalls(time, plan),
    diceFor: createDice(time, plan.seed),
    newId() {
      ids += 1;
      const hex = (ids * 0x9e3779b1) % 2 ** 32;
      return `${hex.toString(16).padStart(8, '0')}-0000-4000-8000-${ids.toString(16).padStart(12, '0')}`;
    },
  };
  return world;
}

function createCalls(time: SteppedClock, { quietFromMs }: SimPlan): Pick<World, 'next' | 'atCall' | 'onCall'> {
  let order = 0;
  let waiting: { calls: number; callback: (computeId?: string) => void; method: string | undefined }[] = [];
  return {
    next() {
      order += 1;
      return order;
    },
    atCall(calls, callback, method) {
      const one = { calls, callback, method };
      waiting.push(one);
      const nowMs = time.now();
      const ofGuardsMs = Math.max(nowMs, Math.min(nowMs + LATEST_OF_GUARDS_MS, quietFromMs - LEFT_MS));
      time.at(OF_GUARDS.has(method) ? ofGuardsMs : nowMs + LATEST_CALL_MS, () => {
        if (!waiting.includes(one)) return;
        waiting = waiting.filter((other) => other !== one);
        callback();
      });
    },
    onCall(method, computeId) {
      for (const one of waiting) if (method === (one.method ?? method)) one.calls -= 1;
      const due = waiting.filter(({ calls }) => calls < 0);
      waiting = waiting.filter(({ calls }) => calls >= 0);
      for (const one of due) one.callback(one.method === undefined ? undefined : computeId);
      return due.length > 0;
    },
  };
}

/** One call more, or less, changes nothing for others, and nothing a second later. */
function createDice(time: SteppedClock, seed: number): World['diceFor'] {
  let second = 0;
  let asked = new Map<string, number>();
  return (who) => {
    const nowSecond = Math.floor(time.now() / 1000);
    if (nowSecond !== second) asked = new Map();
    second = nowSecond;
    const times = (asked.get(who) ?? 0) + 1;
    asked.set(who, times);
    return diceOf(hashOf(`${seed} ${who} ${second} ${times}`));
  };
}

function hashOf(text: string): number {
  let hash = 0;
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return hash;
}

function platformOf({ projects, startMs, seed }: SimPlan, time: SteppedClock): EmulatedService {
  return createEmulatedService({
    fleet: {
      projects: projects.map(({ name, computes }, at) => ({
        id: projectId(at),
        name,
        regionId: 'aws-eu-central-1',
        pgVersion: 17,
        computes: computes.map(({ size: [minCu, maxCu], suspendSeconds, isAwake }, index) => ({
          id: computeId(at, index),
          branchId: `br-${at}-${index}`,
          type: 'read_write' as const,
          ...{ minCu, maxCu, suspendTimeoutSeconds: suspendSeconds },
          state: isAwake ? ('active' as const) : ('idle' as const),
          connections: isAwake ? 1 + index : 0,
          createdAtMs: startMs - 365 * 86_400_000,
        })),
      })),
    },
    ...{
      seed: seed + 1,
      clock: { ...time, now: () => Math.floor(time.now()) },
      operationTimeMs: 2_000,
      availabilityCheckMs: 0,
    },
    host: { monotonicMs: () => time.monotonicMs(), wait: (ms) => time.wait(ms), newId: () => 'of-the-platform' },
  });
}

/** Stores in a row. Where one will come back older, changes are remembered: a copy of an earlier moment is made by doing them again. */
function createStores(time: SteppedClock, { actions }: SimPlan): World['store'] {
  const isNeeded = actions.some((action) => action.do === 'fault' && action.kind === 'store_older');
  const done: { atMs: number; name: string; args: readonly unknown[] }[] = [];
  let made = 0;

  function make(clock: Pick<SteppedClock, 'now'>): Store {
    made += 1;
    const id = `store-${made}`;
    const store = createMemoryStore(clock as SteppedClock);
    return { ...store, storeId: async () => id, timeMs: async () => time.now() };
  }

  function remembering(store: Store): Store {
    if (!isNeeded) return store;
    const wrapped = Object.entries(store).map(([name, method]) => [
      name,
      (...args: unknown[]) => {
        if (CHANGES.test(name)) done.push({ atMs: time.now(), name, args: structuredClone(args) });
        return method(...args);
      },
    ]);
    return Object.fromEntries(wrapped) as unknown as Store;
  }

  const stores: World['store'] = {
    current: remembering(make(time)),
    madeAtMs: time.now(),
    copyAt(atMs) {
      let nowMs = stores.madeAtMs;
      const copy = make({ now: () => (nowMs > atMs ? time.now() : nowMs) });
      for (const one of done.splice(0)) {
        if (one.atMs > atMs) continue;
        nowMs = one.atMs;
        void (Reflect.get(copy, one.name) as (...args: readonly unknown[]) => unknown)(...one.args);
        done.push(one);
      }
      nowMs = Number.POSITIVE_INFINITY;
      return remembering(copy);
    },
  };
  return stores;
}

const CHANGES = /^(acquire|renew|release|put|delete|approve|raise|restore|take|append|defer|remove|replace)/;

function createFiles(plan: SimPlan, time: SteppedClock): World['files'] {
  const first = (name: FileName): Version[] => [
    { atMs: plan.startMs, text: textOf(plan.files[name]), how: 'replaced', policies: plan.files[name] },
  ];
  const versions: World['files']['versions'] = { platform: first('platform'), web: first('web') };
  return { versions, save: (name, version) => void versions[name].push({ atMs: time.now(), ...version }) };
}

export function isDoubted({ people, time }: World, id: string): boolean {
  return people.doubts.some(({ computeId: doubted, untilMs }) => doubted === id && untilMs > time.now());
}

/** The files as they are now; undefined where one is not finished. */
export function filesNow({ files: { versions } }: World): SimFiles | undefined {
  const [platform, web] = FILES.map((name) => versions[name].at(-1)?.policies);
  return platform && web ? { platform, web } : undefined;
}
