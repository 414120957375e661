import { quantile } from '../sorted.ts';
import { HOUR_MS } from '../time/units.ts';
import { type AwakeHistory, type AwakeInterval, awakeShare } from './intervals.ts';

/** A start of a probe may be off by this share of the period, or by {@link MIN_TOLERANCE_MS} if that is more. */
const TOLERANCE = 0.04;
const MIN_TOLERANCE_MS = 3_000;
/** Differences within a factor of this count as the same period. */
const CLUSTER_FACTOR = 1.06;
const MAX_CANDIDATES = 4;
/** A period fits as well as the best if it chains at least this share of the starts that the best chains. */
const EQUALLY_GOOD = 0.8;
/** Less frequent starts cost next to nothing. */
const LONGEST_PERIOD_MS = 6 * HOUR_MS;
const MIN_STARTS = 8;
/** Starts must follow each other at the period this many times more often than random visits would, and in this share of all starts. */
const [MIN_TIMES_CHANCE, MIN_SHARE] = [3, 0.15];

/**
 * Finds the awake intervals that a periodic client starts, also among other visits. While the compute is awake for another client, a
 * probe starts nothing, so an expected start in another interval neither supports nor refutes the period. Undefined if starts are not
 * clearly more regular than random ones.
 */
export function periodicStarts(history: AwakeHistory): { periodMs: number; intervals: AwakeInterval[] } | undefined {
  const intervals = history.intervals.filter(({ start }) => start === 'client');
  if (intervals.length < MIN_STARTS) return undefined;
  const candidates = candidatePeriods(intervals)
    .map((periodMs) => ({ periodMs, chained: chainedBy(history.intervals, intervals, periodMs) }))
    .filter(({ periodMs, chained }) => isClearPeriod(chained.length, intervals.length, history, periodMs));
  const maxChained = Math.max(...candidates.map(({ chained }) => chained.length));
  // Multiples of the period fit nearly as well, so the shortest good one is taken.
  const [best] = candidates
    .filter(({ chained }) => chained.length >= EQUALLY_GOOD * maxChained)
    .toSorted((a, b) => a.periodMs - b.periodMs);
  return best && { periodMs: medianPeriod(best.chained, best.periodMs), intervals: best.chained };
}

/** The most frequent differences between starts, in milliseconds. */
function candidatePeriods(intervals: readonly AwakeInterval[]): number[] {
  const differences = differencesOf(intervals).filter((ms) => ms > 0 && ms <= LONGEST_PERIOD_MS);
  const candidates: number[] = [];
  let rest = [...new Float64Array(differences).sort()];
  while (candidates.length < MAX_CANDIDATES && rest.length >= MIN_STARTS / 2) {
    const [from, to] = densestRange(rest);
    candidates.push(rest[Math.floor((from + to) / 2)] ?? 0);
    rest = [...rest.slice(0, from), ...rest.slice(to)];
  }
  return candidates;
}

/** The range of indexes with the most numbers within a factor of {@link CLUSTER_FACTOR}; `sorted` ascends. */
function densestRange(sorted: readonly number[]): [from: number, to: number] {
  let best: [number, number] = [0, 1];
  let from = 0;
  for (const [index, value] of sorted.entries()) {
    while ((sorted[from] ?? value) * CLUSTER_FACTOR < value) from += 1;
    if (index + 1 - from > best[1] - best[0]) best = [from, index + 1];
  }
  return best;
}

function differencesOf(intervals: readonly AwakeInterval[]): number[] {
  return intervals.slice(1).map(({ startMs }, index) => startMs - (intervals[index]?.startMs ?? startMs));
}

/**
 * The starts that have another start one period before and one period after. At one of these two instants, the compute may instead have been
 * awake already.
 */
function chainedBy(all: readonly AwakeInterval[], starts: readonly AwakeInterval[], periodMs: number): AwakeInterval[] {
  const toleranceMs = toleranceOf(periodMs);
  /** Creates look-ups for instants that ascend from call to call. */
  const search = () => {
    const [startUntil, anyUntil] = [lastUntil(starts), lastUntil(all)];
    return {
      isStart: (atMs: number) =>
        (startUntil(atMs + toleranceMs)?.startMs ?? Number.NEGATIVE_INFINITY) >= atMs - toleranceMs,
      isCovered: (atMs: number) => (anyUntil(atMs)?.endMs ?? Number.NEGATIVE_INFINITY) > atMs,
    };
  };
  const [past, future] = [search(), search()];
  return starts.filter(({ startMs }) => {
    const [before, after] = [startMs - periodMs, startMs + periodMs];
    const [startBefore, startAfter] = [past.isStart(before), future.isStart(after)];
    return (
      (startBefore || startAfter) && (startBefore || past.isCovered(before)) && (startAfter || future.isCovered(after))
    );
  });
}

/** Returns a look-up of the last interval that began at or before an instant; instants must ascend from call to call. */
function lastUntil(intervals: readonly AwakeInterval[]): (atMs: number) => AwakeInterval | undefined {
  let next = 0;
  return (atMs) => {
    while (next < intervals.length && (intervals[next] as AwakeInterval).startMs <= atMs) next += 1;
    return intervals[next - 1];
  };
}

/** True if the period is clear, compared with as many visits at random instants while the compute slept. */
function isClearPeriod(chainedCount: number, startCount: number, history: AwakeHistory, periodMs: number): boolean {
  const covered = awakeShare(history) ?? 1;
  const asleepMs = (history.toMs - history.fromMs) * (1 - covered);
  const expectedStarts = (2 * toleranceOf(periodMs) * startCount) / Math.max(1, asleepMs);
  const hitProbability = (1 - covered) * (1 - Math.exp(-expectedStarts));
  const byChance = hitProbability * hitProbability + 2 * hitProbability * covered;
  return chainedCount >= MIN_STARTS && chainedCount / startCount >= Math.max(MIN_SHARE, MIN_TIMES_CHANCE * byChance);
}

function toleranceOf(periodMs: number): number {
  return Math.max(MIN_TOLERANCE_MS, TOLERANCE * periodMs);
}

function medianPeriod(chained: readonly AwakeInterval[], periodMs: number): number {
  const near = differencesOf(chained).filter((ms) => Math.abs(ms - periodMs) <= 2 * toleranceOf(periodMs));
  return quantile(near, 0.5) ?? periodMs;
}
