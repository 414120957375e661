import { type AwakeHistory, type AwakeInterval, awakeShare } from './intervals.ts';

/** A start may be off by so much of the period, or by the resolution of instants, and still be of the same probe. */
const TOLERANCE = 0.04;
const LEAST_TOLERANCE_MS = 3_000;
/** Differences within a factor of this count as the same period. */
const CLUSTER = 1.06;
const CANDIDATES = 4;
/** Rarer starts cost next to nothing. */
const LONGEST_PERIOD_MS = 6 * 3_600_000;
const LEAST_STARTS = 8;
/** Starts must follow each other at the period this many times more often than random visits would. */
const TIMES_CHANCE = 3;
const LEAST_SHARE = 0.15;

/** Starts that come again and again after the same time. */
export interface PeriodicStarts {
  periodMs: number;
  /** The awake intervals that they began. */
  intervals: AwakeInterval[];
}

/**
 * Finds starts of periodic clients, also among other visits: while the compute is awake for another client, a probe starts nothing, so a
 * start covered by another interval neither supports nor refutes the period. Undefined where starts are not clearly more regular than
 * random ones.
 */
export function periodicStarts(history: AwakeHistory): PeriodicStarts | undefined {
  const intervals = history.intervals.filter(({ start }) => start === 'client');
  if (intervals.length < LEAST_STARTS) return undefined;
  const found = candidatePeriods(intervals)
    .map((periodMs) => ({ periodMs, chained: chainedBy(history.intervals, intervals, periodMs) }))
    .filter(({ periodMs, chained }) => isClear(chained.length, intervals.length, history, periodMs));
  const most = Math.max(...found.map(({ chained }) => chained.length));
  // Twice the period fits nearly as well as the period.
  const [best] = found
    .filter(({ chained }) => chained.length >= 0.8 * most)
    .toSorted((a, b) => a.periodMs - b.periodMs);
  return best && { periodMs: refined(best.chained, best.periodMs), intervals: best.chained };
}

/** The most frequent differences between starts, in milliseconds. */
function candidatePeriods(intervals: readonly AwakeInterval[]): number[] {
  const differences = differencesOf(intervals).filter((ms) => ms > 0 && ms <= LONGEST_PERIOD_MS);
  const candidates: number[] = [];
  let rest = [...new Float64Array(differences).sort()];
  while (candidates.length < CANDIDATES && rest.length >= LEAST_STARTS / 2) {
    const [from, to] = densest(rest);
    candidates.push(rest[Math.floor((from + to) / 2)] ?? 0);
    rest = [...rest.slice(0, from), ...rest.slice(to)];
  }
  return candidates;
}

/** The place of the most numbers within a factor of {@link CLUSTER}; `sorted` ascends. */
function densest(sorted: readonly number[]): [from: number, to: number] {
  let best: [number, number] = [0, 1];
  let from = 0;
  for (const [index, value] of sorted.entries()) {
    while ((sorted[from] ?? value) * CLUSTER < value) from += 1;
    if (index + 1 - from > best[1] - best[0]) best = [from, index + 1];
  }
  return best;
}

function differencesOf(intervals: readonly AwakeInterval[]): number[] {
  return intervals.slice(1).map(({ startMs }, index) => startMs - (intervals[index]?.startMs ?? startMs));
}

/** Those that have a start one period before and one after; of one of both the compute may have been awake already. */
function chainedBy(all: readonly AwakeInterval[], starts: readonly AwakeInterval[], periodMs: number): AwakeInterval[] {
  const toleranceMs = toleranceOf(periodMs);
  /** For instants that ascend from one call to the next. */
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

/** Finds the last interval that began at or before an instant; instants ascend from one call to the next. */
function lastUntil(intervals: readonly AwakeInterval[]): (atMs: number) => AwakeInterval | undefined {
  let next = 0;
  return (atMs) => {
    while (next < intervals.length && (intervals[next] as AwakeInterval).startMs <= atMs) next += 1;
    return intervals[next - 1];
  };
}

/** Compares with visits of the same number at random instants of the time in which the compute slept. */
function isClear(chained: number, starts: number, history: AwakeHistory, periodMs: number): boolean {
  const covered = awakeShare(history) ?? 1;
  const asleepMs = (history.toMs - history.fromMs) * (1 - covered);
  const hit = (1 - covered) * (1 - Math.exp((-2 * toleranceOf(periodMs) * starts) / Math.max(1, asleepMs)));
  const byChance = hit * hit + 2 * hit * covered;
  return chained >= LEAST_STARTS && chained / starts >= Math.max(LEAST_SHARE, TIMES_CHANCE * byChance);
}

function toleranceOf(periodMs: number): number {
  return Math.max(LEAST_TOLERANCE_MS, TOLERANCE * periodMs);
}

/** The median difference between consecutive starts of the period. */
function refined(chained: readonly AwakeInterval[], periodMs: number): number {
  const differences = differencesOf(chained)
    .filter((ms) => Math.abs(ms - periodMs) <= 2 * toleranceOf(periodMs))
    .toSorted((a, b) => a - b);
  return differences[Math.floor(differences.length / 2)] ?? periodMs;
}
