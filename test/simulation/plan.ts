/** What happens in one simulation: a list of actions that a seed decides, and from which one can be left out. */

import { seededRandom } from '../../src/domain/random.ts';
import type { FileName, SimFiles, SimPolicy, SimSchedule, SimSize, SimValues, SimWindow } from './policies.ts';
import { trialsOf } from './trials.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;

/** Troubles of ports. `daemon` is the index of the one that has it; the platform's are everybody's. */
export const FAULTS = [
  'store_slow',
  'store_down',
  'store_unanswered',
  'store_empty',
  'store_older',
  'api_slow',
  'api_down',
  'api_throttled',
  'api_unanswered',
  'api_lost',
  'api_not_applied',
  'api_stale',
  'api_duplicates',
  'api_hides_project',
  'api_refuses',
  'api_late',
  'clock_off',
  'stall',
  'source_down',
  'source_slow',
] as const;
export type FaultKind = (typeof FAULTS)[number];

/** Actions of people and of machines. */
const ACTIONS = [
  'edit',
  'half_save',
  'hold',
  'release_hold',
  'release_compute',
  'freeze',
  'unfreeze',
  'restore',
  'stop',
  'kill',
  'person_changes',
  'person_restarts',
  'clients_come',
  'rename',
  'create_compute',
  'delete_compute',
  'demand',
  'silence',
  'release_guard',
  'rename_branch',
] as const satisfies readonly Doing['do'][];

export type Doing =
  | { do: 'edit'; file: FileName; policies: readonly SimPolicy[]; how: 'replaced' | 'in_place'; isSignalled: boolean }
  | { do: 'half_save'; file: FileName; policies: readonly SimPolicy[]; share: number; restMs: number }
  | { do: 'hold'; compute: number; values: SimValues; isFreeze: boolean; seconds: number }
  | { do: 'release_hold'; nth: number }
  | { do: 'release_compute'; compute: number }
  | { do: 'freeze'; project: number | 'all'; seconds: number }
  | { do: 'unfreeze'; nth: number }
  | { do: 'restore'; compute: number }
  /** `versions`: another release starts, a newer one or an older one. */
  | { do: 'stop' | 'kill'; daemon: number; backAfterMs: number; versions: number }
  | { do: 'person_changes'; compute: number; values: SimValues }
  | { do: 'person_restarts'; compute: number }
  | { do: 'clients_come'; compute: number; count: number; forMs: number }
  | { do: 'rename'; project: number; name: string }
  | { do: 'create_compute'; project: number; size: SimSize }
  | { do: 'delete_compute'; compute: number }
  /** Its clients need so many CU: with less, guards find it bad. */
  | { do: 'demand'; compute: number; cu: number }
  /** The source of guards says nothing of it. */
  | { do: 'silence'; compute: number; how: Silence; forMs: number }
  | { do: 'release_guard'; compute: number }
  | { do: 'rename_branch'; compute: number; name: string }
  /** Beside those of the file, and instead of one of this name. */
  | { do: 'add_policy'; file: FileName; policy: SimSchedule }
  | { do: 'fault'; kind: FaultKind; daemon: number; project: number; forMs: number; by: number };

/**
 * `afterCalls`: so many calls of the store by daemons are let through first, or so many of this method; then what is done to a compute is done
 * to the one of that call.
 */
export type SimAction = { atMs: number; afterCalls?: number; method?: StoreMoment } & Doing;

/** How a source says nothing of a compute: no series, several ones, or one without a value. */
const SILENCES = ['missing', 'doubled', 'empty'] as const;
export type Silence = (typeof SILENCES)[number];

/** Calls of a store before which something happens; `putHarm`: of a record with what a guard has found. */
export type StoreMoment = 'putIntent' | 'putRecord' | 'putWatch' | 'putHarm' | 'finishOutbox';

export interface SimPlan {
  seed: number;
  startMs: number;
  daemons: number;
  projects: readonly {
    name: string;
    computes: readonly { size: SimSize; suspendSeconds: number; isAwake: boolean; demandCu: number }[];
  }[];
  files: SimFiles;
  /** Of the settings. */
  disruption: { lowerWhen: 'any' | 'idle'; cooldownMs: number };
  /** In their order. */
  actions: readonly SimAction[];
  /** From then on nothing happens. */
  quietFromMs: number;
  /** From then on one thing happens after the other. */
  trialsFromMs: number;
  /** Instants before which nothing has happened for minutes, or one thing only: all must be as it should. */
  checksAtMs: readonly number[];
}

const START_MS = Date.parse('2026-03-04T07:50:00Z');
const SIZES: readonly SimSize[] = [
  [0.25, 0.25],
  [0.25, 1],
  [0.5, 2],
  [1, 1],
  [1, 4],
  [2, 2],
  [2, 4],
  [4, 4],
];
const TIMEOUTS = [60, 300, 600, 3600, -1] as const;
const NAMES = ['web-shop', 'api-core', 'web-admin', 'data-lake'] as const;
const OTHER_NAMES = ['web-new', 'web-next', 'ops-new', 'data-new'] as const;

/** Nothing happens in this time, and troubles end before. */
const QUIET = { fromMs: 4.5 * MINUTE_MS, toMs: 9.5 * MINUTE_MS } as const;

/** Boundaries in the quiet time: earliest and latest instants. */
const LATE_EDGES_MS = [
  [QUIET.fromMs + 1.9 * MINUTE_MS, QUIET.fromMs + 2.1 * MINUTE_MS],
  [QUIET.fromMs + 2.8 * MINUTE_MS, QUIET.fromMs + 3.2 * MINUTE_MS],
] as const;

/** What is due at such a boundary is looked at so long after it, in milliseconds. */
const CHECKED_MS = 20 * SECOND_MS;

/** Helpers that throw the dice of a seed. */
export interface Dice {
  uniform(): number;
  /** A whole number from 0 to below `count`. */
  index(count: number): number;
  pick<T>(from: readonly T[]): T;
  /** A whole number of milliseconds. */
  between(fromMs: number, toMs: number): number;
  is(chance: number): boolean;
}

export function diceOf(seed: number): Dice {
  const uniform = seededRandom(seed);
  const index = (count: number) => Math.floor(uniform() * count);
  return {
    uniform,
    index,
    pick: (from) => from[index(from.length)] as never,
    between: (fromMs, toMs) => Math.round(fromMs + uniform() * (toMs - fromMs)),
    is: (chance) => uniform() < chance,
  };
}

export function planOf(seed: number): SimPlan {
  const dice = diceOf(seed);
  const daemons = 1 + dice.index(3);
  const edges = Array.from(
    { length: 6 },
    () => START_MS + SECOND_MS * Math.round(dice.between(0.5 * MINUTE_MS, QUIET.fromMs) / SECOND_MS),
  );
  const lateEdges = LATE_EDGES_MS.map(
    ([fromMs, toMs]) => START_MS + SECOND_MS * Math.round(dice.between(fromMs, toMs) / SECOND_MS),
  );
  // With more computes, a set may restart so many at once that it has to be approved.
  const isLarge = diceOf(seed ^ 0xf1ee7).is(0.2);
  const more = isLarge ? 3 : 1;
  const projects = NAMES.slice(0, 3 + dice.index(2)).map((name) => ({
    name,
    computes: Array.from({ length: more + dice.index(2) }, () => {
      const size = dice.pick(SIZES);
      const demandCu = size[1] * dice.pick([0.1, 0.4, 0.8]);
      return { size, suspendSeconds: dice.pick(TIMEOUTS), isAwake: dice.is(isLarge ? 0.95 : 0.6), demandCu };
    }),
  }));
  const computes = projects.reduce((sum, one) => sum + one.computes.length, 0);
  const world: Making = {
    dice,
    edges,
    lateEdges,
    projects: projects.length,
    computes,
    daemons,
    kinds: someOf(dice, ACTIONS),
    faults: someOf(dice, FAULTS),
  };
  const actions = Array.from({ length: 34 + dice.index(10) }, () => anAction(world));
  const faults = Array.from({ length: 12 + dice.index(8) }, () => aFault(world));
  const trialsFromMs = START_MS + QUIET.toMs + SECOND_MS;
  const trials = trialsOf({ ...world, dice: diceOf(seed ^ 0x7e1a1) }, trialsFromMs);
  return {
    ...{ seed, startMs: START_MS, daemons, projects },
    files: { platform: policiesOf(world, 'platform'), web: policiesOf(world, 'web') },
    disruption: {
      lowerWhen: dice.pick(isLarge ? ['any'] : ['any', 'idle']),
      cooldownMs: dice.pick([30 * SECOND_MS, 2 * MINUTE_MS]),
    },
    actions: [...actions, ...faults, ...trials.actions].toSorted((a, b) => a.atMs - b.atMs),
    quietFromMs: START_MS + QUIET.fromMs,
    trialsFromMs,
    checksAtMs: [...lateEdges.map((ms) => ms + CHECKED_MS), START_MS + QUIET.toMs, ...trials.checksAtMs],
  };
}

/**
 * Some of the kinds, at least three. With few kinds in a seed they meet more often, and a seed without those that lose data can be held to
 * every rule (swarm testing, Groce et al. 2012).
 */
function someOf<Kind>(dice: Dice, all: readonly Kind[]): readonly Kind[] {
  for (;;) {
    const some = all.filter(() => dice.is(0.4));
    if (some.length >= 3) return some;
  }
}

export interface Making {
  dice: Dice;
  edges: readonly number[];
  /** Boundaries in the quiet time. */
  lateEdges: readonly number[];
  projects: number;
  computes: number;
  daemons: number;
  /** Kinds of actions and of faults that this seed uses. */
  kinds: readonly Doing['do'][];
  faults: readonly FaultKind[];
}

function policiesOf({ dice, edges, lateEdges, kinds }: Making, file: FileName): SimPolicy[] {
  const reach = file === 'web' ? ['web-*', 'web-shop'] : ['*', 'web-*', 'api-*', 'data-lake'];
  const window = (): SimWindow => {
    const [a, b] = [dice.pick(edges), dice.pick(dice.is(0.3) ? lateEdges : edges)];
    const fromMs = Math.min(a, b);
    return { fromMs, toMs: Math.max(a, b, fromMs + 20 * SECOND_MS), ...valuesOf(dice) };
  };
  const schedules = Array.from(
    { length: 1 + dice.index(2) },
    (_, at): SimSchedule => ({
      kind: 'schedule',
      name: `${file}-${at}`,
      projects: [at === 0 ? (reach[0] as string) : dice.pick(reach)],
      priority: dice.index(3),
      ...(kinds.includes('rename_branch') && { byBranch: true }),
      windows: Array.from({ length: 1 + dice.index(3) }, window),
      otherwise: dice.is(0.3) ? dice.pick(['leave', 'baseline'] as const) : valuesOf(dice),
    }),
  );
  const others: SimPolicy[] = [];
  if (dice.is(0.35)) {
    others.push({
      kind: 'limits',
      name: `${file}-limits`,
      projects: [dice.pick(reach)],
      maxCu: dice.pick([1, 2, 4]),
      hard: dice.is(0.5),
    });
  }
  if (dice.is(0.15)) {
    const { fromMs, toMs } = window();
    others.push({ kind: 'freeze', name: `${file}-freeze`, projects: [dice.pick(reach)], fromMs, toMs });
  }
  if (dice.is(0.45)) {
    const remedy = dice.pick(['notify', 'undo', 'undo_with_restart'] as const);
    others.push({ kind: 'guard', name: `${file}-guard`, projects: [dice.pick(reach)], remedy });
  }
  return [...schedules, ...others];
}

function valuesOf(dice: Dice): SimValues {
  const which = dice.index(4);
  return {
    ...(which !== 0 && { size: dice.pick(SIZES) }),
    ...(which <= 1 && { suspendSeconds: dice.pick(TIMEOUTS) }),
  };
}

/** Mostly within seconds of a boundary; never in, or shortly before, a quiet time. */
function momentOf({ dice, edges }: Making, lastsMs = 0): number {
  for (;;) {
    const near = dice.pick(edges) + dice.between(-9 * SECOND_MS, 9 * SECOND_MS);
    const atMs = dice.is(0.6) ? near : START_MS + dice.between(15 * SECOND_MS, QUIET.fromMs);
    const sinceMs = atMs - START_MS;
    if (sinceMs > 0 && sinceMs + lastsMs < QUIET.fromMs) return atMs;
  }
}

function anAction(making: Making): SimAction {
  const { dice, computes, projects, daemons, kinds } = making;
  const compute = dice.index(computes);
  const daemon = dice.index(daemons);
  const file: FileName = dice.is(0.6) ? 'platform' : 'web';
  const seconds = dice.pick([20, 60, 300, 3600]);
  // Nobody sends SIGHUP while somebody else may be saving.
  const isSignalled = !kinds.includes('half_save') && dice.is(0.6);
  const makers: readonly (() => Doing)[] = [
    () => ({
      do: 'edit',
      file,
      policies: policiesOf(making, file),
      how: dice.pick(['replaced', 'in_place']),
      isSignalled,
    }),
    () => ({
      do: 'half_save',
      file,
      policies: policiesOf(making, file),
      share: dice.uniform(),
      restMs: dice.is(0.3) ? dice.between(200, 9_500) : dice.between(7_000, 9_700),
    }),
    () => ({ do: 'hold', compute, values: holdValues(dice), isFreeze: false, seconds }),
    () => ({ do: 'hold', compute, values: {}, isFreeze: true, seconds }),
    () => ({ do: 'hold', compute, values: holdValues(dice), isFreeze: false, seconds }),
    () => ({ do: 'release_hold', nth: dice.index(8) }),
    () => ({ do: 'release_compute', compute }),
    () => ({ do: 'freeze', project: dice.is(0.3) ? 'all' : dice.index(projects), seconds: Math.min(seconds, 180) }),
    () => ({ do: 'unfreeze', nth: dice.index(4) }),
    () => ({ do: 'restore', compute }),
    () => ({ do: 'stop', daemon, backAfterMs: dice.between(500, 90_000), versions: dice.pick(RELEASES) }),
    () => ({ do: 'kill', daemon, backAfterMs: dice.between(500, 90_000), versions: dice.pick(RELEASES) }),
    () => ({ do: 'kill', daemon, backAfterMs: dice.between(500, 20_000), versions: 0 }),
    () => ({ do: 'person_changes', compute, values: holdValues(dice) }),
    () => ({ do: 'person_changes', compute, values: { size: dice.pick(SIZES) } }),
    () => ({ do: 'person_restarts', compute }),
    () => ({ do: 'clients_come', compute, count: 1 + dice.index(20), forMs: dice.between(5_000, 600_000) }),
    () => ({ do: 'clients_come', compute, count: 1 + dice.index(20), forMs: dice.between(5_000, 60_000) }),
    () => ({ do: 'rename', project: dice.index(projects), name: dice.pick(OTHER_NAMES) }),
    () => ({ do: 'create_compute', project: dice.index(projects), size: dice.pick(SIZES) }),
    () => ({ do: 'delete_compute', compute }),
    () => ({ do: 'demand', compute, cu: dice.pick([0.1, 0.4, 0.9, 1.8, 3.5]) }),
    () => ({ do: 'silence', compute, how: dice.pick(SILENCES), forMs: dice.between(10_000, 120_000) }),
    () => ({ do: 'release_guard', compute }),
    () => ({ do: 'rename_branch', compute, name: `branch-${dice.index(1_000)}` }),
  ];
  let doing = dice.pick(makers)();
  while (!kinds.includes(doing.do)) doing = dice.pick(makers)();
  const lastsMs = 'backAfterMs' in doing ? doing.backAfterMs : 10_000;
  const edgeMs = dice.pick(making.edges);
  const isEarly = edgeMs + lastsMs + 10 * SECOND_MS < START_MS + QUIET.fromMs;
  const early = { atMs: edgeMs - dice.between(0, 300), ...doing };
  if (isEarly && dice.is(0.25)) return { ...early, afterCalls: dice.index(90) };
  if (isEarly && dice.is(0.4)) return { ...early, afterCalls: dice.index(3), method: 'putIntent' };
  if (isEarly && dice.is(0.15)) return { ...early, afterCalls: dice.index(6), method: 'putRecord' };
  if (doing.do === 'kill' && doing.backAfterMs <= 20_000 && dice.is(0.4))
    return { ...early, ...atGuards(making), ...doing };
  return { atMs: momentOf(making, lastsMs), ...doing };
}

/** Just before what a guard has found is stored, or was sent. */
function atGuards({ dice, edges }: Making): Pick<SimAction, 'atMs' | 'afterCalls' | 'method'> {
  const atMs = Math.min(...edges) + dice.between(0, MINUTE_MS);
  return { atMs, afterCalls: dice.index(2), method: dice.pick(['putWatch', 'putHarm', 'finishOutbox'] as const) };
}

/** Of a daemon that is replaced: mostly the same one, otherwise the next one, or back to the one before. */
const RELEASES = [0, 0, 0, 1, 1, -1] as const;

export function holdValues(dice: Dice): SimValues {
  const values = valuesOf(dice);
  return values.size === undefined && values.suspendSeconds === undefined ? { size: [1, 1] } : values;
}

/** What forgets is rare: after it little can be demanded. */
const WEIGHTS: Partial<Record<FaultKind, number>> = { store_empty: 0.25, store_older: 0.35 };
const LONGEST_MS: Partial<Record<FaultKind, number>> = { stall: 20_000, store_unanswered: 15_000, api_stale: 55_000 };

/** A project that is hidden for less time must not be forgotten, in milliseconds. */
export const FORGOTTEN_MS = 9_500;

function aFault(making: Making): SimAction {
  const { dice, daemons, projects, faults } = making;
  let kind = dice.pick(faults);
  while (!dice.is(WEIGHTS[kind] ?? 1)) kind = dice.pick(faults);
  const longestMs = LONGEST_MS[kind] ?? dice.pick([3_000, 15_000, 60_000]);
  const isShort = kind === 'api_hides_project' && dice.is(0.8);
  const forMs = isShort ? dice.between(3_000, FORGOTTEN_MS) : dice.between(500, longestMs);
  const by = dice.uniform();
  return {
    atMs: momentOf(making, forMs),
    do: 'fault',
    kind,
    daemon: dice.index(daemons),
    project: dice.index(projects),
    forMs,
    by,
  };
}
