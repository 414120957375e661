/** Estimates the pauses of clients within awake intervals from the lengths of these intervals, since operations don't show them. */
import { DAY_MS } from '../time/units.ts';
import { type DaySpan, type Option, weightOf } from './later-weeks.ts';
import { areMemoryless, type Visits } from './visits.ts';

/** Lengths are counted in bins of a minute, or longer ones for timeouts above an hour. */
const MIN_BIN_MS = 60_000;
const MAX_BINS = 60;

/**
 * Indexes into the counts of awake intervals, per day or in total. SUSPENDS counts the intervals that ended by timeout. All other counts leave
 * out availability checks. INTERVALS counts all intervals; TOTAL_MS sums their time without final timeouts, and SHORTEST_MS that of the intervals
 * in the first bin. From BINS on are the numbers of intervals by length; intervals longer than the timeout are in no bin.
 */
const [SUSPENDS, INTERVALS, TOTAL_MS, SHORTEST_MS, BINS] = [0, 1, 2, 3, 4];
type IntervalCounts = Float64Array<ArrayBufferLike>;

interface ShorterTimeout {
  timeoutMs: number;
  /** The cost of a start, expressed in milliseconds awake. */
  startWorthMs: number;
}

/** The expected milliseconds awake that a shorter timeout saves, and its gain: what it saves minus the cost of additional starts. */
interface ShorterGain extends Option {
  savedMs: number;
  gainMs: number;
}

/**
 * Estimates the gain of shorter timeouts, assuming that pauses are independent (a renewal process). With f(k) the share of intervals of
 * length k and g(k) that of pauses, f(k) = Σ g(j) f(k - j), which is solved for g by recursion. Pauses within an interval are shorter
 * than the present timeout. Time that pauses don't explain, such as long visits, is assumed to consist of pauses of the worst length: just
 * above the timeout under test, so that each costs a start.
 */
export function pausesWithin(visits: Visits): (shorter: ShorterTimeout) => ShorterGain {
  const binMs = Math.max(MIN_BIN_MS, visits.timeoutMs / MAX_BINS);
  const days = countsByDay(visits, binMs);
  const isRegular = areWholeTimeouts(visits);

  function gainOf(counts: IntervalCounts, { timeoutMs, startWorthMs }: ShorterTimeout) {
    const [suspends = 0, intervals = 0, totalMs = 0] = counts;
    if (isRegular) {
      const pauseCount = totalMs / visits.timeoutMs;
      const saved = (suspends + pauseCount) * (visits.timeoutMs - timeoutMs);
      return { savedMs: saved, gainMs: saved - pauseCount * startWorthMs };
    }
    const pauses = pausesOf(counts);
    if (!pauses) return { savedMs: Number.NEGATIVE_INFINITY, gainMs: Number.NEGATIVE_INFINITY };
    let longer = 0;
    let savedMs = 0;
    let explainedMs = pauses.shortestMs;
    for (const [bin, count] of pauses.perInterval.entries()) {
      const lengthMs = Math.min((bin + 0.5) * binMs, visits.timeoutMs);
      explainedMs += count * lengthMs;
      if ((bin + 1) * binMs <= timeoutMs) continue;
      longer += count;
      savedMs += count * Math.max(0, lengthMs - timeoutMs);
    }
    const unexplainedMs = Math.max(0, totalMs / intervals - explainedMs);
    const starts = longer + unexplainedMs / timeoutMs;
    const saved = suspends * (visits.timeoutMs - timeoutMs) + intervals * savedMs;
    return { savedMs: saved, gainMs: saved - intervals * startWorthMs * starts };
  }

  const allDays = sumOf(days, { from: 0, to: days.length }, () => 1);
  const weighted = (span: DaySpan) => sumOf(days, span, (day) => weightOf(day, days.length));
  return (shorter) => ({ ...gainOf(allDays, shorter), gainIn: (span) => gainOf(weighted(span), shorter).gainMs });
}

/** Lengths are regular if this share of them, and at least so many, are multiples of the timeout within the tolerance. */
const REGULAR_SHARE = 0.95;
const REGULAR_MS = 10_000;
const MIN_INTERVALS = 20;

/**
 * True if a client returns just when the timeout passes: usually in time, sometimes too late, so that the interval ends. Lengths are then
 * memoryless multiples of the timeout, and each pause within an interval is as long as the timeout.
 */
function areWholeTimeouts({ intervals, timeoutMs }: Visits): boolean {
  const lengths = intervals
    .filter(({ start, end }) => start === 'client' && end === 'timeout')
    .map(({ startMs, endMs }) => endMs - startMs - timeoutMs);
  const wholeTimeouts = lengths.filter((ms) => Math.abs(ms - Math.round(ms / timeoutMs) * timeoutMs) <= REGULAR_MS);
  if (wholeTimeouts.length < Math.max(MIN_INTERVALS, REGULAR_SHARE * lengths.length)) return false;
  const longer = lengths.filter((ms) => ms > timeoutMs / 2);
  return longer.length > lengths.length / 2 && areMemoryless(longer.map((ms) => ms - timeoutMs / 2));
}

/** The average number of pauses per interval, by length in bins; undefined if no interval is in the first bin. */
function pausesOf(counts: IntervalCounts) {
  const intervals = counts[INTERVALS] ?? 0;
  const shares = counts.subarray(BINS).map((count) => count / intervals);
  const shortest = shares[0] ?? 0;
  if (!(shortest > 0)) return undefined;
  const pauses = new Float64Array(shares.length);
  for (let length = 1; length < shares.length; length += 1) {
    let rest = shares[length] ?? 0;
    for (let pause = 1; pause < length; pause += 1) rest -= (pauses[pause] ?? 0) * (shares[length - pause] ?? 0);
    pauses[length] = Math.max(0, rest / shortest);
  }
  // An interval ends after each visit with a probability of `shortest`, so it has 1 / `shortest` visits on average.
  return {
    perInterval: pauses.map((share) => share / shortest),
    shortestMs: (counts[SHORTEST_MS] ?? 0) / (shortest * intervals),
  };
}

function countsByDay({ intervals, timeoutMs, fromMs, toMs }: Visits, binMs: number): IntervalCounts[] {
  const firstDay = Math.floor(fromMs / DAY_MS);
  const dayCount = Math.max(1, Math.ceil(toMs / DAY_MS) - firstDay);
  const fieldCount = BINS + Math.ceil(timeoutMs / binMs) + 1;
  const days = Array.from({ length: dayCount }, () => new Float64Array(fieldCount));
  for (const { startMs, endMs, start, end } of intervals) {
    const day = days[Math.floor(startMs / DAY_MS) - firstDay];
    if (!day) continue;
    const add = (index: number, value: number) => {
      day[index] = (day[index] ?? 0) + value;
    };
    if (end === 'timeout') add(SUSPENDS, 1);
    // Availability checks of the platform have no pauses.
    if (start === 'check') continue;
    const lengthMs = Math.max(0, endMs - startMs - (end === 'timeout' ? timeoutMs : 0));
    const bin = Math.floor(lengthMs / binMs);
    add(INTERVALS, 1);
    add(TOTAL_MS, lengthMs);
    if (bin === 0) add(SHORTEST_MS, lengthMs);
    if (BINS + bin < fieldCount) add(BINS + bin, 1);
  }
  return days;
}

function sumOf(days: readonly IntervalCounts[], { from, to }: DaySpan, weightOfDay: (day: number) => number) {
  const sums: IntervalCounts = new Float64Array(days[0]?.length ?? 0);
  for (const [offset, day] of days.slice(from, to).entries()) {
    const weight = weightOfDay(from + offset);
    for (const [index, value] of day.entries()) sums[index] = (sums[index] ?? 0) + weight * value;
  }
  return sums;
}
