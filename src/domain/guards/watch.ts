/**
 * Watches computes after lowerings: a state machine that advances with each round of a guard's answers, in a daemon as in a replay of the
 * past. Instants are milliseconds since the epoch.
 */

import { groupBy } from '../grouping.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../time/units.ts';
import type { Verdict } from './verdict.ts';

/** The longest watch after a lowering: a compute that sleeps longer has had no clients that it could hurt. */
export const LONGEST_WATCH_MS = DAY_MS;

/** The longest gap between samples of the same stretch: three rounds. */
const MAX_GAP_MS = 90_000;

/**
 * At most this many computes of a guard, or {@link COMMON_SHARE} of them if that is more, are found hurt within {@link MOST_HARMS_WITHIN_MS}:
 * a larger number suggests a shared cause.
 */
const MOST_HARMS = 2;
const MOST_HARMS_WITHIN_MS = 10 * MINUTE_MS;
/** The share of a guard's computes that must be bad to suggest a shared cause. */
const COMMON_SHARE = 0.02;
/** Another compute must have been bad for this share of `for` to suggest a shared cause: before that it may be a spike. */
const COUNTS_AFTER_SHARE = 0.5;

/** The minimum time between two reports of a shared cause. */
const COMMON_QUIET_MS = HOUR_MS;

/** Durations in milliseconds. */
export interface WatchTerms {
  /** How long a compute must be bad without a break to count as hurt. */
  forMs: number;
  /** How long a compute is watched after a lowering, while it is awake. */
  watchMs: number;
  /** How long samples are ignored after the lowering or a start of the compute. */
  settleMs: number;
}

/** One compute in a round of answers. */
export interface JudgedCompute {
  computeId: string;
  /** The guard's verdict; absent while the compute sleeps or restarts. */
  state?: Verdict['state'] | undefined;
  startedAtMs?: number | undefined;
  /** When the lowering to watch was answered; absent if there is none. */
  loweredAtMs?: number | undefined;
}

interface BadStretch {
  /** The first and the last sample without a break. */
  sinceMs: number;
  lastMs: number;
  /** The first bad sample before a gap in the samples. A compute that is bad again after the gap counts as bad since this sample. */
  firstMs?: number;
  /** True if its cause is not the lowering. */
  isCommon?: true;
}

interface WatchedCompute {
  /** The last round in which it was awake. Not updated while it is healthy after its watch, so that an unchanged memory is not stored again. */
  lastMs: number;
  /** A bad stretch, until a healthy sample. */
  bad?: BadStretch;
  watch?: Watch;
}

interface Watch {
  loweredAtMs: number;
  /** How long the compute was awake with samples (`sampledMs`), and without (`blindMs`). */
  sampledMs: number;
  blindMs: number;
  isOver?: true;
}

/** A compute that has been bad after its lowering for as long as the guard demands. */
interface Suspect {
  computeId: string;
  loweredAtMs: number;
  /** The first bad sample since the last break. */
  badSinceMs: number;
  /** See {@link BadStretch}. */
  firstMs?: number;
}

/** A lowering that hurt. */
export interface Harm extends Suspect {
  foundAtMs: number;
}

/** The leader's state of a guard between rounds. Computes that are healthy and not watched are left out. */
export interface WatchMemory {
  computes: Readonly<Record<string, WatchedCompute>>;
  /** The harms of the last 24 hours. */
  harms: readonly Harm[];
  /** When a shared cause was last reported. */
  commonToldAtMs?: number;
}

export const NOTHING_WATCHED: WatchMemory = { computes: {}, harms: [] };

/** The end of a watch; or a shared cause, after which the watch continues. */
export interface WatchEvent {
  computeId: string;
  loweredAtMs: number;
  outcome: 'healthy' | 'harm' | 'no_samples' | 'common_cause';
  /** The first bad sample, if there was one. */
  badSinceMs?: number;
}

interface WatchRound {
  atMs: number;
  /** All computes that the guard selects. */
  computes: readonly JudgedCompute[];
}

export interface WatchStep {
  memory: WatchMemory;
  events: readonly WatchEvent[];
  /** A shared cause to report to people now. */
  tellCommon?: { sinceMs: number; computeIds: readonly string[] };
}

/** Advances by one round. Pure: the same rounds give the same events. */
export function watchRound(terms: WatchTerms, before: WatchMemory, round: WatchRound): WatchStep {
  const { atMs } = round;
  const watched = new Map(round.computes.map((compute) => [compute.computeId, advance(terms, before, compute, atMs)]));
  const suspects = round.computes.flatMap(({ computeId }) => suspectOf(terms, computeId, watched.get(computeId), atMs));
  const harms = before.harms.filter(({ foundAtMs }) => atMs - foundAtMs < LONGEST_WATCH_MS);
  const recentHarms = harms.filter(({ foundAtMs }) => atMs - foundAtMs < MOST_HARMS_WITHIN_MS);
  const others = suspects.length > 0 ? badNow(round, watched, { harms, recentHarms }) : NOBODY_BAD;
  const byCause = groupBy(suspects, (suspect) => causeOf(terms, suspect, others, round));
  const common = byCause.get('common') ?? [];
  // Suspects beyond the limit are found by a later round, if they are still bad.
  const hurt = (byCause.get('lowering') ?? [])
    .toSorted((a, b) => a.badSinceMs - b.badSinceMs)
    .slice(0, Math.max(0, mostHarms(round) - recentHarms.length));
  const events: WatchEvent[] = [
    ...hurt.map((suspect): WatchEvent => ({ ...suspect, outcome: 'harm' })),
    ...common.map((suspect): WatchEvent => ({ ...suspect, outcome: 'common_cause' })),
  ];
  for (const { computeId } of common) {
    const bad = watched.get(computeId)?.bad;
    if (bad) bad.isCommon = true;
  }
  for (const { computeId } of hurt) endWatch(watched.get(computeId));
  for (const [computeId, compute] of watched) events.push(...endWithoutHarm(terms, computeId, compute));
  const lastToldMs = before.commonToldAtMs ?? Number.NEGATIVE_INFINITY;
  const tellsCommon = common.length > 0 && atMs - lastToldMs >= COMMON_QUIET_MS;
  const commonToldAtMs = tellsCommon ? atMs : before.commonToldAtMs;
  return {
    memory: {
      computes: Object.fromEntries([...watched].flatMap(([id, compute]) => (compute ? [[id, compute]] : []))),
      harms: [...harms, ...hurt.map((suspect) => ({ ...suspect, foundAtMs: atMs }))],
      ...(commonToldAtMs !== undefined && { commonToldAtMs }),
    },
    events,
    ...(tellsCommon && {
      tellCommon: {
        sinceMs: Math.min(...common.map(({ badSinceMs }) => badSinceMs)),
        computeIds: common.map(({ computeId }) => computeId),
      },
    }),
  };
}

/** The state of a compute after its answer; undefined if it is healthy and not watched. */
function advance(
  { settleMs }: WatchTerms,
  { computes }: WatchMemory,
  { computeId, state, startedAtMs = 0, loweredAtMs }: JudgedCompute,
  atMs: number,
): WatchedCompute | undefined {
  const before = computes[computeId];
  const settlesUntilMs = loweredAtMs === undefined ? 0 : Math.max(loweredAtMs, startedAtMs) + settleMs;
  const bad = badAfter(before?.bad, { state, atMs, loweredAtMs, isSettling: atMs < settlesUntilMs });
  const watch = loweredAtMs === undefined ? undefined : watchAfter(before, { state, atMs, loweredAtMs });
  if (!watch && !bad) return undefined;
  const isUnchanged = state === undefined || (watch?.isOver === true && !bad);
  const lastMs = isUnchanged ? (before?.lastMs ?? atMs) : atMs;
  return { lastMs, ...(bad && { bad }), ...(watch && { watch }) };
}

function watchAfter(
  before: WatchedCompute | undefined,
  { state, atMs, loweredAtMs }: { state: JudgedCompute['state']; atMs: number; loweredAtMs: number },
): Watch {
  if (before?.watch?.loweredAtMs !== loweredAtMs) return { loweredAtMs, sampledMs: 0, blindMs: 0 };
  const { watch } = before;
  if (state === undefined || watch.isOver) return { ...watch };
  const sinceLastMs = atMs - before.lastMs;
  const spentMs = sinceLastMs <= MAX_GAP_MS ? sinceLastMs : 0;
  if (state === 'unknown') return { ...watch, blindMs: watch.blindMs + spentMs };
  return { ...watch, sampledMs: watch.sampledMs + spentMs };
}

/** The bad stretch after an answer. While a compute settles, a stretch may continue but not begin. */
function badAfter(
  before: BadStretch | undefined,
  now: { state: JudgedCompute['state']; atMs: number; loweredAtMs: number | undefined; isSettling: boolean },
): BadStretch | undefined {
  const { state, atMs, loweredAtMs, isSettling } = now;
  const hasBegunWhileSettling = isSettling && loweredAtMs !== undefined && (before?.sinceMs ?? 0) > loweredAtMs;
  const earlier = hasBegunWhileSettling ? undefined : before;
  const isBroken = earlier !== undefined && atMs - earlier.lastMs > MAX_GAP_MS;
  if (state === 'healthy') return undefined;
  if (state === undefined) return isBroken ? undefined : earlier;
  if (state === 'unknown') return earlier;
  if (earlier && !isBroken) return { ...earlier, lastMs: atMs };
  if (isSettling) return undefined;
  return { ...earlier, ...(earlier && { firstMs: earlier.firstMs ?? earlier.sinceMs }), sinceMs: atMs, lastMs: atMs };
}

function suspectOf(
  { forMs, settleMs }: WatchTerms,
  computeId: string,
  watched: WatchedCompute | undefined,
  atMs: number,
): Suspect[] {
  const { bad, watch } = watched ?? {};
  if (!bad || !watch || watch.isOver || bad.isCommon || bad.lastMs !== atMs) return [];
  const { loweredAtMs } = watch;
  const countsFromMs = bad.sinceMs <= loweredAtMs ? loweredAtMs + settleMs : bad.sinceMs;
  return atMs - countsFromMs < forMs
    ? []
    : [{ computeId, loweredAtMs, badSinceMs: bad.sinceMs, ...(bad.firstMs !== undefined && { firstMs: bad.firstMs }) }];
}

function mostHarms({ computes }: WatchRound): number {
  return Math.max(MOST_HARMS, Math.floor(computes.length * COMMON_SHARE));
}

/** The instants at which the computes that are bad now became bad. */
interface BadNow {
  /** Of computes that were not lowered, or are no longer watched. */
  unlowered: readonly number[];
  /** The number of computes that were not lowered, or are no longer watched, and have a value, whether bad or not. */
  unloweredCount: number;
  /** Of watched computes, and of recent harms. */
  lowered: readonly number[];
}

const NOBODY_BAD: BadNow = { unlowered: [], unloweredCount: 0, lowered: [] };

function badNow(
  { atMs, computes }: WatchRound,
  watched: ReadonlyMap<string, WatchedCompute | undefined>,
  { harms, recentHarms }: { harms: readonly Harm[]; recentHarms: readonly Harm[] },
): BadNow {
  const hurt = new Set(harms.map(({ computeId }) => computeId));
  const unlowered = computes.filter(
    ({ computeId, state }) =>
      (state === 'healthy' || state === 'bad') && isUnwatched(watched.get(computeId)) && !hurt.has(computeId),
  );
  const badSinceOf = (compute: WatchedCompute | undefined) =>
    compute?.bad?.lastMs === atMs ? [compute.bad.firstMs ?? compute.bad.sinceMs] : [];
  return {
    unlowered: unlowered.flatMap(({ computeId }) => badSinceOf(watched.get(computeId))),
    unloweredCount: unlowered.length,
    lowered: [
      ...[...watched.values()].filter((one) => !isUnwatched(one)).flatMap(badSinceOf),
      ...recentHarms.map(({ badSinceMs, firstMs }) => firstMs ?? badSinceMs),
    ],
  };
}

/**
 * Decides whether a suspect suffers from its lowering or from a common cause. The cause is common if the suspect was bad before the lowering, or
 * if others became bad in the same minutes. `not_known` while others are bad, but not yet for half of `for`.
 */
function causeOf(
  { forMs, settleMs }: WatchTerms,
  { loweredAtMs, badSinceMs, firstMs: beganMs = badSinceMs }: Suspect,
  { unlowered, unloweredCount, lowered }: BadNow,
  round: WatchRound,
): 'lowering' | 'common' | 'not_known' {
  if (beganMs <= loweredAtMs) return 'common';
  // A compute that was not lowered does not settle: its stretch may begin earlier.
  const nearUnlowered = unlowered.filter((ms) => ms >= beganMs - settleMs - forMs && ms <= beganMs + forMs);
  const nearLowered = lowered.filter((ms) => Math.abs(ms - beganMs) <= forMs);
  const isCommon = (leastMs: number) => {
    const isOldEnough = (ms: number) => round.atMs - ms >= leastMs;
    const count = nearUnlowered.filter(isOldEnough).length;
    return (
      (count > 0 && count >= unloweredCount * COMMON_SHARE) || nearLowered.filter(isOldEnough).length > mostHarms(round)
    );
  };
  if (isCommon(forMs * COUNTS_AFTER_SHARE)) return 'common';
  return isCommon(0) ? 'not_known' : 'lowering';
}

function isUnwatched(compute: WatchedCompute | undefined): boolean {
  return compute?.watch === undefined || compute.watch.isOver === true;
}

function endWithoutHarm(terms: WatchTerms, computeId: string, compute: WatchedCompute | undefined): WatchEvent[] {
  if (!compute?.watch || compute.watch.isOver) return [];
  const outcome = outcomeOf(terms, compute.watch, compute);
  if (outcome === undefined) return [];
  endWatch(compute);
  return [{ computeId, loweredAtMs: compute.watch.loweredAtMs, outcome }];
}

/** The outcome of a watch that ends without harm; undefined while it continues. */
function outcomeOf(
  { watchMs }: WatchTerms,
  watch: Watch,
  { bad, lastMs }: WatchedCompute,
): 'healthy' | 'no_samples' | undefined {
  if (watch.sampledMs >= watchMs && !bad) return 'healthy';
  // A compute that is bad now may still turn out to be hurt.
  const isBadNow = bad !== undefined && bad.lastMs === lastMs;
  return watch.blindMs >= watchMs && !(isBadNow && watch.sampledMs >= watchMs) ? 'no_samples' : undefined;
}

function endWatch(compute: WatchedCompute | undefined): void {
  if (compute?.watch) compute.watch.isOver = true;
}
