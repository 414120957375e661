/** Estimates the pauses of clients within awake intervals from the lengths of these intervals, since operations don't show them. */
import { DAY_MS } from '../time/units.ts';
import { type DaySpan, weightOf } from './later-weeks.ts';
import { areMemoryless, type Visits } from './visits.ts';

/** Lengths are counted in bins of a minute, or longer ones for timeouts above an hour. */
const MIN_BIN_MS = 60_000;
const MAX_BINS = 60;

/**
 * The fields of the counts of awake intervals, per day or in total: how many ended by timeout; how many in all; their time without the
 * final timeout, of all and of those in the first bin, in milliseconds. From {@link BINS} on: their number by length, in bins up to the
 * timeout; longer ones are in no bin.
 */
const [SUSPENDS, STRETCHES, TOTAL_MS, SHORTEST_MS, BINS] = [0, 1, 2, 3, 4];
type Lengths = Float64Array<ArrayBufferLike>;

export interface ShorterTimeout {
  timeoutMs: number;
  /** The cost of a start, expressed in milliseconds awake. */
  startWorthMs: number;
}

/** The expected gain of a shorter timeout: the saved milliseconds awake minus the cost of additional starts. */
export interface ShorterGain {
  savedMs: number;
  gainMs: number;
  /** The gain in some days; later ones count more. */
  gainIn(days: DaySpan): number;
}

/**
 * Estimates the gain of shorter timeouts, assuming that pauses are independent (a renewal process). With f(k) the share of intervals of
 * length k and g(k) that of pauses, f(k) = Σ g(j) f(k - j), which is solved for g by recursion. Pauses within an interval are shorter
 * than the present timeout. Time that pauses don't explain, such as long visits, counts as the largest possible number of pauses of the
 * worst length: just above the timeout under test.
 */
export function pausesWithin(visits: Visits): (shorter: ShorterTimeout) => ShorterGain {
  const binMs = Math.max(MIN_BIN_MS, visits.timeoutMs / MAX_BINS);
  const days = lengthsByDay(visits, binMs);
  const isRegular = areWholeTimeouts(visits);

  function gainOf(sums: Lengths, { timeoutMs, startWorthMs }: ShorterTimeout): { savedMs: number; gainMs: number } {
    const [suspends = 0, stretches = 0, totalMs = 0] = sums;
    if (isRegular) {
      const many = totalMs / visits.timeoutMs;
      const saved = (suspends + many) * (visits.timeoutMs - timeoutMs);
      return { savedMs: saved, gainMs: saved - many * startWorthMs };
    }
    const pauses = pausesOf(sums);
    if (!pauses) return { savedMs: Number.NEGATIVE_INFINITY, gainMs: Number.NEGATIVE_INFINITY };
    let [longer, savedMs, explainedMs] = [0, 0, pauses.shortestMs];
    for (const [bin, many] of pauses.perStretch.entries()) {
      const lengthMs = Math.min((bin + 0.5) * binMs, visits.timeoutMs);
      explainedMs += many * lengthMs;
      if ((bin + 1) * binMs <= timeoutMs) continue;
      longer += many;
      savedMs += many * Math.max(0, lengthMs - timeoutMs);
    }
    const unexplainedMs = Math.max(0, totalMs / stretches - explainedMs);
    const starts = longer + unexplainedMs / timeoutMs;
    const saved = suspends * (visits.timeoutMs - timeoutMs) + stretches * savedMs;
    return { savedMs: saved, gainMs: saved - stretches * startWorthMs * starts };
  }

  return (shorter) => ({
    ...gainOf(
      sumOf(days, { from: 0, to: days.length }, () => 1),
      shorter,
    ),
    gainIn: (span) =>
      gainOf(
        sumOf(days, span, (day) => weightOf(day, days.length)),
        shorter,
      ).gainMs,
  });
}

/** The share of lengths that must be multiples of the timeout, and the tolerance. */
const REGULAR_SHARE = 0.95;
const REGULAR_MS = 10_000;
const MIN_STRETCHES = 20;

/**
 * True if a client comes just when the timeout passes, and sometimes a little later, which ends the interval. Lengths are then multiples
 * of the timeout and memoryless, and each pause within an interval is as long as the timeout.
 */
function areWholeTimeouts({ intervals, timeoutMs }: Visits): boolean {
  const lengths = intervals
    .filter(({ start, end }) => start === 'client' && end === 'timeout')
    .map(({ startMs, endMs }) => endMs - startMs - timeoutMs);
  const whole = lengths.filter((ms) => Math.abs(ms - Math.round(ms / timeoutMs) * timeoutMs) <= REGULAR_MS);
  if (whole.length < Math.max(MIN_STRETCHES, REGULAR_SHARE * lengths.length)) return false;
  const longer = lengths.filter((ms) => ms > timeoutMs / 2);
  return longer.length > lengths.length / 2 && areMemoryless(longer.map((ms) => ms - timeoutMs / 2));
}

/** The average number of pauses per interval, by length in bins; undefined if no interval is in the first bin. */
function pausesOf(sums: Lengths) {
  const stretches = sums[STRETCHES] ?? 0;
  const shares = sums.subarray(BINS).map((many) => many / stretches);
  const shortest = shares[0] ?? 0;
  if (!(shortest > 0)) return undefined;
  const pauses = new Float64Array(shares.length);
  for (let length = 1; length < shares.length; length += 1) {
    let rest = shares[length] ?? 0;
    for (let one = 1; one < length; one += 1) rest -= (pauses[one] ?? 0) * (shares[length - one] ?? 0);
    pauses[length] = Math.max(0, rest / shortest);
  }
  // An interval ends after each visit with a probability of `shortest`, so it has 1 / `shortest` visits on average.
  return {
    perStretch: pauses.map((share) => share / shortest),
    shortestMs: (sums[SHORTEST_MS] ?? 0) / (shortest * stretches),
  };
}

function lengthsByDay({ intervals, timeoutMs, fromMs, toMs }: Visits, binMs: number): Lengths[] {
  const firstDay = Math.floor(fromMs / DAY_MS);
  const fieldCount = BINS + Math.ceil(timeoutMs / binMs) + 1;
  const days = Array.from(
    { length: Math.max(1, Math.ceil(toMs / DAY_MS) - firstDay) },
    () => new Float64Array(fieldCount),
  );
  for (const { startMs, endMs, start, end } of intervals) {
    const day = days[Math.floor(startMs / DAY_MS) - firstDay];
    if (!day) continue;
    const add = (place: number, value: number) => {
      day[place] = (day[place] ?? 0) + value;
    };
    if (end === 'timeout') add(SUSPENDS, 1);
    // Availability checks of the platform have no pauses.
    if (start === 'check') continue;
    const lengthMs = Math.max(0, endMs - startMs - (end === 'timeout' ? timeoutMs : 0));
    const bin = Math.floor(lengthMs / binMs);
    add(STRETCHES, 1);
    add(TOTAL_MS, lengthMs);
    if (bin === 0) add(SHORTEST_MS, lengthMs);
    if (BINS + bin < fieldCount) add(BINS + bin, 1);
  }
  return days;
}

function sumOf(days: readonly Lengths[], { from, to }: DaySpan, weightOfDay: (day: number) => number): Lengths {
  const sums = new Float64Array(days[0]?.length ?? 0);
  for (const [index, day] of days.slice(from, to).entries()) {
    const weight = weightOfDay(from + index);
    for (const [place, value] of day.entries()) sums[place] = (sums[place] ?? 0) + weight * value;
  }
  return sums;
}
