/**
 * What a guard sees after lowerings: a state machine that goes from one round of answers to the next, the same in a daemon and in a
 * replay of the past. Instants are milliseconds since the epoch.
 */

import { DAY_MS, HOUR_MS, MINUTE_MS } from '../time/units.ts';
import type { Verdict } from './verdict.ts';

/** A lowering is watched for at most this long: a compute that sleeps longer has had no clients that it could hurt. */
export const LONGEST_WATCH_MS = DAY_MS;

/** Samples further apart than this don't follow on each other: three rounds. */
const MAX_GAP_MS = 90_000;

/** More harms of one guard in this time are taken for a cause that they share. */
const AT_ONCE_WITHIN_MS = 10 * MINUTE_MS;
const AT_ONCE = 2;
/** The share of a guard's computes from which on badness is taken for a shared cause. */
const COMMON_SHARE = 0.02;

/** A shared cause is told again only after this long. */
const COMMON_QUIET_MS = HOUR_MS;

export interface WatchTerms {
  /** So long a compute must be bad without a break. */
  forMs: number;
  /** So long a compute is watched after a lowering, while it is awake. */
  watchMs: number;
  /** Samples count from so long after the lowering or the start of the compute. */
  settleMs: number;
}

/** One compute in a round of answers. */
export interface SeenCompute {
  computeId: string;
  /** What the guard says of it; absent while it sleeps or restarts. */
  state?: Verdict['state'] | undefined;
  startedAtMs?: number | undefined;
  /** When the lowering was answered that is to be watched; absent if there is none. */
  loweredAtMs?: number | undefined;
}

interface WatchedCompute {
  /** The last round in which it was awake. */
  lastMs: number;
  /** Since when it has been bad without a break, and the last sample of that; common: for a cause that is not the lowering. */
  bad?: { sinceMs: number; lastMs: number; isCommon?: true };
  watch?: {
    loweredAtMs: number;
    /** Awake with samples, and awake without. */
    sampledMs: number;
    blindMs: number;
    isOver?: true;
  };
}

/** A lowering that hurt. */
export interface Harm {
  computeId: string;
  loweredAtMs: number;
  /** The first bad sample. */
  badSinceMs: number;
  foundAtMs: number;
}

/** What the leader remembers of a guard from round to round. Computes that are healthy and not watched are left out. */
export interface WatchMemory {
  computes: Readonly<Record<string, WatchedCompute>>;
  /** The harms of the last 24 hours. */
  harms: readonly Harm[];
  /** When a shared cause was last told. */
  commonToldAtMs?: number;
}

export const NOTHING_WATCHED: WatchMemory = { computes: {}, harms: [] };

/** The end of a watch; or a shared cause, after which the watch goes on. */
export interface WatchEvent {
  computeId: string;
  loweredAtMs: number;
  outcome: 'healthy' | 'harm' | 'no_samples' | 'common_cause';
  /** The first bad sample, if there was one. */
  badSinceMs?: number;
}

export interface WatchRound {
  atMs: number;
  /** Every compute that the guard selects. */
  computes: readonly SeenCompute[];
}

export interface WatchStep {
  memory: WatchMemory;
  events: readonly WatchEvent[];
  /** Set if people are to be told of a shared cause now: since when, and which computes. */
  tellCommon?: { sinceMs: number; computeIds: readonly string[] };
}

type Seen = ReadonlyMap<string, WatchedCompute | undefined>;

/** A compute that has been bad after its lowering for as long as the guard demands. */
interface Suspect {
  computeId: string;
  loweredAtMs: number;
  badSinceMs: number;
}

/** Goes one round on. Pure: the same rounds give the same events. */
export function watchRound(terms: WatchTerms, before: WatchMemory, round: WatchRound): WatchStep {
  const { atMs } = round;
  const seen = new Map(round.computes.map((one) => [one.computeId, seeCompute(terms, before, one, atMs)]));
  const suspects = round.computes.flatMap(({ computeId }) => suspectOf(terms, computeId, seen.get(computeId), atMs));
  const harms = before.harms.filter(({ foundAtMs }) => atMs - foundAtMs < LONGEST_WATCH_MS);
  const isMany = exceedsAtOnce(suspects.length, harms, round);
  const common = suspects.filter(
    (suspect) =>
      isMany || suspect.badSinceMs <= suspect.loweredAtMs || hasCompanions(terms, suspect, { round, seen, harms }),
  );
  const hurt = suspects.filter((suspect) => !common.includes(suspect));
  const events: WatchEvent[] = [
    ...hurt.map((one): WatchEvent => ({ ...one, outcome: 'harm' })),
    ...common.map((one): WatchEvent => ({ ...one, outcome: 'common_cause' })),
  ];
  for (const { computeId } of common) excuse(seen.get(computeId));
  for (const { computeId } of hurt) endWatch(seen.get(computeId));
  for (const [computeId, one] of seen) {
    const outcome = endOf(terms, one);
    if (outcome === undefined || one?.watch === undefined) continue;
    events.push({ computeId, loweredAtMs: one.watch.loweredAtMs, outcome });
    endWatch(one);
  }
  const isTold = before.commonToldAtMs !== undefined && atMs - before.commonToldAtMs < COMMON_QUIET_MS;
  const tellsCommon = common.length > 0 && !isTold;
  const commonToldAtMs = tellsCommon ? atMs : before.commonToldAtMs;
  return {
    memory: {
      computes: Object.fromEntries([...seen].flatMap(([id, one]) => (one ? [[id, one]] : []))),
      harms: [...harms, ...hurt.map((one) => ({ ...one, foundAtMs: atMs }))],
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

/** What is known of a compute after its answer; undefined if nothing of it has to be remembered. */
function seeCompute(
  { settleMs }: WatchTerms,
  { computes }: WatchMemory,
  { computeId, state, startedAtMs = 0, loweredAtMs }: SeenCompute,
  atMs: number,
): WatchedCompute | undefined {
  const known = computes[computeId];
  const settlesUntilMs = loweredAtMs === undefined ? 0 : Math.max(loweredAtMs, startedAtMs) + settleMs;
  const bad = badAfter(known?.bad, { state, atMs, loweredAtMs, isSettling: atMs < settlesUntilMs });
  const watch = loweredAtMs === undefined ? undefined : watchAfter(known, { state, atMs, loweredAtMs });
  if (!watch && !bad) return undefined;
  const isUnchanged = state === undefined || (watch?.isOver === true && !bad);
  const lastMs = isUnchanged ? (known?.lastMs ?? atMs) : atMs;
  return { lastMs, ...(bad && { bad }), ...(watch && { watch }) };
}

function watchAfter(
  known: WatchedCompute | undefined,
  { state, atMs, loweredAtMs }: { state: SeenCompute['state']; atMs: number; loweredAtMs: number },
): NonNullable<WatchedCompute['watch']> {
  if (known?.watch?.loweredAtMs !== loweredAtMs) return { loweredAtMs, sampledMs: 0, blindMs: 0 };
  const sinceLastMs = atMs - known.lastMs;
  const spentMs = sinceLastMs <= MAX_GAP_MS ? sinceLastMs : 0;
  const { sampledMs, blindMs, ...watch } = known.watch;
  if (state === undefined || watch.isOver) return { ...known.watch };
  if (state === 'unknown') return { ...watch, sampledMs, blindMs: blindMs + spentMs };
  return { ...watch, sampledMs: sampledMs + spentMs, blindMs };
}

/** The badness after an answer. While a compute settles, badness goes on but does not begin. */
function badAfter(
  before: WatchedCompute['bad'],
  now: { state: SeenCompute['state']; atMs: number; loweredAtMs: number | undefined; isSettling: boolean },
): WatchedCompute['bad'] {
  const { state, atMs, loweredAtMs, isSettling } = now;
  const isBegunSettling = isSettling && loweredAtMs !== undefined && (before?.sinceMs ?? 0) > loweredAtMs;
  const going = before && !isBegunSettling && atMs - before.lastMs <= MAX_GAP_MS ? before : undefined;
  if (state === 'healthy') return undefined;
  if (state !== 'bad') return going;
  if (going) return { ...going, lastMs: atMs };
  return isSettling ? undefined : { sinceMs: atMs, lastMs: atMs };
}

function suspectOf(
  { forMs, settleMs }: WatchTerms,
  computeId: string,
  seen: WatchedCompute | undefined,
  atMs: number,
): Suspect[] {
  const { bad, watch } = seen ?? {};
  if (!bad || !watch || watch.isOver || bad.isCommon || bad.lastMs !== atMs) return [];
  const { loweredAtMs } = watch;
  const countsFromMs = bad.sinceMs <= loweredAtMs ? loweredAtMs + settleMs : bad.sinceMs;
  return atMs - countsFromMs < forMs ? [] : [{ computeId, loweredAtMs, badSinceMs: bad.sinceMs }];
}

function exceedsAtOnce(suspects: number, harms: readonly Harm[], { atMs, computes }: WatchRound): boolean {
  const recent = harms.filter(({ foundAtMs }) => atMs - foundAtMs < AT_ONCE_WITHIN_MS).length;
  return suspects > 0 && suspects + recent > Math.max(AT_ONCE, Math.floor(computes.length * COMMON_SHARE));
}

/** True if computes that were not lowered are bad in the same minutes. */
function hasCompanions(
  { forMs, settleMs }: WatchTerms,
  { badSinceMs }: Suspect,
  { round, seen, harms }: { round: WatchRound; seen: Seen; harms: readonly Harm[] },
): boolean {
  const { atMs } = round;
  const hurt = new Set(harms.map(({ computeId }) => computeId));
  const unchanged = round.computes.filter(
    ({ computeId, state }) =>
      (state === 'healthy' || state === 'bad') && isUnchanged(seen.get(computeId)) && !hurt.has(computeId),
  );
  const companions = unchanged.filter(({ computeId }) => {
    const bad = seen.get(computeId)?.bad;
    if (!bad || bad.lastMs !== atMs || atMs - bad.sinceMs < forMs / 2) return false;
    return bad.sinceMs >= badSinceMs - settleMs - forMs && bad.sinceMs <= badSinceMs + forMs;
  });
  return companions.length > 0 && companions.length >= unchanged.length * COMMON_SHARE;
}

function isUnchanged(seen: WatchedCompute | undefined): boolean {
  return seen?.watch === undefined || seen.watch.isOver === true;
}

/** How a watch ends that has found no harm; undefined while it goes on. */
function endOf({ watchMs }: WatchTerms, seen: WatchedCompute | undefined): 'healthy' | 'no_samples' | undefined {
  const { watch, bad } = seen ?? {};
  if (!watch || watch.isOver) return undefined;
  if (watch.sampledMs >= watchMs) return bad ? undefined : 'healthy';
  return watch.blindMs >= watchMs ? 'no_samples' : undefined;
}

function excuse(seen: WatchedCompute | undefined): void {
  if (seen?.bad) seen.bad.isCommon = true;
}

function endWatch(seen: WatchedCompute | undefined): void {
  if (seen?.watch) seen.watch.isOver = true;
}
