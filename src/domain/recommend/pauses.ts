/** Estimates pauses of clients within awake stretches: operations don't show them, the lengths of the stretches do. */
import { DAY_MS } from '../time/units.ts';
import { isSureGain } from './resample.ts';
import { areMemoryless, type Visits } from './visits.ts';

/** Lengths are sorted into bins of a minute, or into more where the timeout is longer than an hour. */
const LEAST_BIN_MS = 60_000;
const MOST_BINS = 60;

/**
 * Counts of awake stretches, by day or in sum: those that ended with the timeout; all; their time without the final timeout, all together
 * and those in the first bin, milliseconds. From {@link BINS} on: the number by length, in bins up to the timeout; longer ones are in
 * none.
 */
const [SUSPENDS, STRETCHES, TOTAL_MS, SHORTEST_MS, BINS] = [0, 1, 2, 3, 4];
type Lengths = Float64Array<ArrayBufferLike>;

export interface ShorterTimeout {
  timeoutMs: number;
  /** The cost of a start, in milliseconds awake. */
  startWorthMs: number;
}

/** The expected gain of a shorter timeout, in milliseconds awake less the worth of its starts. */
export interface ShorterGain {
  gainMs: number;
  /** True if there is a gain in 95 % of resamples by day. */
  isSure(): boolean;
}

/**
 * Assumes that each pause is independent of those before (a renewal process). With f(k) the share of stretches of length k, and g(k) of
 * pauses, f(k) = Σ g(j) f(k - j): a recursion gives g. No pause within a stretch is as long as the present timeout. Time that such pauses
 * don't explain, as of visits that are long or come in series, counts as the largest possible number of pauses of the worst length: just
 * longer than the timeout under test.
 */
export function pausesWithin(visits: Visits): (shorter: ShorterTimeout) => ShorterGain {
  const binMs = Math.max(LEAST_BIN_MS, visits.timeoutMs / MOST_BINS);
  const days = lengthsByDay(visits, binMs);
  const isRegular = comesWithTheTimeout(visits);

  function gainOf(sums: Lengths, { timeoutMs, startWorthMs }: ShorterTimeout): number {
    const [suspends = 0, stretches = 0, totalMs = 0] = sums;
    if (isRegular) {
      const many = totalMs / visits.timeoutMs;
      return (suspends + many) * (visits.timeoutMs - timeoutMs) - many * startWorthMs;
    }
    const pauses = pausesOf(sums);
    if (!pauses) return Number.NEGATIVE_INFINITY;
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
    return suspends * (visits.timeoutMs - timeoutMs) + stretches * (savedMs - startWorthMs * starts);
  }

  return (shorter) => ({
    gainMs: gainOf(sumOf(days), shorter),
    isSure: () => isSureGain(days, (sums) => gainOf(sums, shorter)),
  });
}

/** So much of the lengths must be whole timeouts, give or take so much. */
const REGULAR_SHARE = 0.95;
const REGULAR_MS = 10_000;
const LEAST_STRETCHES = 20;

/**
 * A client comes each time that the timeout passes, and now and then a little later, which ends the stretch: stretches are whole timeouts
 * long, and how long one is does not depend on those before. Then each pause within them is as long as the timeout.
 */
function comesWithTheTimeout({ intervals, timeoutMs }: Visits): boolean {
  const lengths = intervals
    .filter(({ start, end }) => start === 'client' && end === 'timeout')
    .map(({ startMs, endMs }) => endMs - startMs - timeoutMs);
  const whole = lengths.filter((ms) => Math.abs(ms - Math.round(ms / timeoutMs) * timeoutMs) <= REGULAR_MS);
  if (whole.length < Math.max(LEAST_STRETCHES, REGULAR_SHARE * lengths.length)) return false;
  const longer = lengths.filter((ms) => ms > timeoutMs / 2);
  return longer.length > lengths.length / 2 && areMemoryless(longer.map((ms) => ms - timeoutMs / 2));
}

/** The average number of pauses in a stretch by length, in bins; undefined where no stretch is short. */
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
  // A stretch ends after each visit with the share of the shortest: then it has 1 / that many visits.
  return {
    perStretch: pauses.map((share) => share / shortest),
    shortestMs: (sums[SHORTEST_MS] ?? 0) / (shortest * stretches),
  };
}

function lengthsByDay({ intervals, timeoutMs, fromMs, toMs }: Visits, binMs: number): Lengths[] {
  const firstDay = Math.floor(fromMs / DAY_MS);
  const places = BINS + Math.ceil(timeoutMs / binMs) + 1;
  const days = Array.from({ length: Math.max(1, Math.ceil(toMs / DAY_MS) - firstDay) }, () => new Float64Array(places));
  for (const { startMs, endMs, start, end } of intervals) {
    const day = days[Math.floor(startMs / DAY_MS) - firstDay];
    if (!day) continue;
    const add = (place: number, value: number) => {
      day[place] = (day[place] ?? 0) + value;
    };
    if (end === 'timeout') add(SUSPENDS, 1);
    // The platform visits once, clients as they do.
    if (start === 'check') continue;
    const lengthMs = Math.max(0, endMs - startMs - (end === 'timeout' ? timeoutMs : 0));
    const bin = Math.floor(lengthMs / binMs);
    add(STRETCHES, 1);
    add(TOTAL_MS, lengthMs);
    if (bin === 0) add(SHORTEST_MS, lengthMs);
    if (BINS + bin < places) add(BINS + bin, 1);
  }
  return days;
}

function sumOf(days: readonly Lengths[]): Lengths {
  const sums = new Float64Array(days[0]?.length ?? 0);
  for (const day of days) for (const [place, value] of day.entries()) sums[place] = (sums[place] ?? 0) + value;
  return sums;
}
