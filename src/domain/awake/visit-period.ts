import { quantile } from '../sorted.ts';
import { sum } from '../sum.ts';
import type { Visit } from './client-activity.ts';

// The limits below are chosen, without a source.
/** The share of gaps that must be near the median. */
const REGULAR_SHARE = 0.75;
const VERY_REGULAR_SHARE = 0.9;
/** How early or late a periodic client may be, as a share of its period. */
const JITTER = 0.25;
const MIN_VISITS = 3;
/** The minimum number of expected visits in a window. */
const MIN_VISITS_OF_WINDOW = 4;
/** If more than this share of the intervals between samples has calls, gaps don't show a period. */
const DENSE_SHARE = 0.4;
/** If more than this share has calls, several calls in one interval are several visits. */
const FULL_SHARE = 0.9;
/** The minimum number of calls of a visit with several calls: two calls may also be two visits. */
const MIN_LEVEL = 3;
/** Numbers of visits are steady up to this variance, as a share of their mean (for random visits it is 1), or up to this standard deviation. */
const [STEADY_VARIANCE, STEADY_DEVIATION] = [0.5, 0.1];
/** The share of intervals that must fit the calls of a visit, or the period. */
const FITTING_SHARE = 0.9;
/** Two visits may be one if the gap between them is within this share of the time between samples, plus their errors times the factor. */
const [NEAR, ERROR_FACTOR] = [0.3, 1.05];
/** The same share to tell whether visits are dense. */
const NEAR_IF_DENSE = 0.1;
/** A gap may differ from the median by the errors of both visits times this factor. */
const GAP_ERROR_FACTOR = 1.2;

interface Sampling {
  fromMs: number;
  toMs: number;
  /** The average time between two samples. */
  resolutionMs: number;
  /** True if every call was counted; otherwise visits may be missing. */
  countsCalls: boolean;
}

/** Visits of one client, and their period; undefined if they are random, or too few. */
interface Rhythm {
  visits: readonly Visit[];
  periodMs: number | undefined;
  /** Set if visits between samples may be missing, so that the period is an upper bound. */
  isFrequent?: true;
}

/**
 * Finds the period of visits (oldest first). If two clients send the same query, and one of them sends it several times at each visit, they are
 * separated, provided that both are then regular.
 */
export function rhythmsOf(visits: readonly Visit[], sampling: Sampling): Rhythm[] {
  const { fromMs, toMs, resolutionMs } = sampling;
  const inSpan = visits.filter((visit) => visit.fromMs >= fromMs);
  const intervals = joinByInterval(inSpan, sampling);
  const density = (intervals.size * resolutionMs) / (toMs - fromMs);
  const shown = burstsOf(inSpan, resolutionMs, NEAR_IF_DENSE, 0).length;
  if (!sampling.countsCalls && shown * resolutionMs > FULL_SHARE * (toMs - fromMs)) {
    return [{ visits, periodMs: (toMs - fromMs) / shown, isFrequent: true }];
  }
  const periodMs =
    sampling.countsCalls && density > DENSE_SHARE ? undefined : gapPeriod(burstsOf(inSpan, resolutionMs));
  if (periodMs !== undefined || !sampling.countsCalls) return [{ visits, periodMs }];
  const separated = density < FULL_SHARE ? separateByLevels([...intervals.values()], resolutionMs) : undefined;
  return separated ?? [{ visits, periodMs: callPeriod(intervals, sampling) }];
}

/** Joins the visits of each interval between samples: how their calls are distributed is unknown. */
function joinByInterval(visits: readonly Visit[], { fromMs, resolutionMs }: Sampling): Map<number, Visit> {
  const intervals = new Map<number, Visit>();
  for (const visit of visits) {
    const interval = Math.floor((visit.fromMs - fromMs) / resolutionMs);
    const { fromMs: atMs, errorMs, calls } = intervals.get(interval) ?? { ...visit, calls: 0 };
    const low = Math.min(atMs - errorMs, visit.fromMs - visit.errorMs);
    const high = Math.max(atMs + errorMs, visit.fromMs + visit.errorMs);
    const middleMs = (low + high) / 2;
    const joined = { fromMs: middleMs, toMs: middleMs, errorMs: (high - low) / 2, calls: calls + visit.calls };
    intervals.set(interval, joined);
  }
  return intervals;
}

/** Joins visits that may be one, see {@link NEAR}. */
function burstsOf(visits: readonly Visit[], resolutionMs: number, near = NEAR, errorFactor = ERROR_FACTOR): Visit[] {
  const bursts: Visit[] = [];
  for (const visit of visits) {
    const last = bursts.at(-1);
    const nearMs = near * resolutionMs + errorFactor * (visit.errorMs + (last?.errorMs ?? 0));
    if (last && visit.fromMs - last.toMs <= nearMs) {
      last.toMs = Math.max(last.toMs, visit.toMs);
      last.calls += visit.calls;
    } else bursts.push({ ...visit });
  }
  return bursts;
}

/** The period by the gaps between visits. */
function gapPeriod(bursts: readonly Visit[], regularShare = REGULAR_SHARE): number | undefined {
  if (bursts.length < MIN_VISITS) return undefined;
  const gaps = bursts.slice(1).map((visit, index) => {
    const before = bursts[index] as Visit;
    return { ms: visit.fromMs - before.fromMs, errorMs: GAP_ERROR_FACTOR * (visit.errorMs + before.errorMs) };
  });
  const lengths = gaps.map(({ ms }) => ms);
  const median = quantile(lengths, 0.5) ?? 0;
  const near = gaps.filter(({ ms, errorMs }) => Math.abs(ms - median) <= Math.max(JITTER * median, errorMs));
  // If instants are only known by samples, the average is more exact than the median.
  return near.length < regularShare * gaps.length ? undefined : sum(near.map(({ ms }) => ms)) / near.length;
}

/** Separates two clients: one with the same number of calls (the level) at each visit, and another with the remaining calls. */
function separateByLevels(bursts: readonly Visit[], resolutionMs: number): Rhythm[] | undefined {
  const levels = [...new Set(bursts.map(({ calls }) => calls))].filter((level) => level >= MIN_LEVEL);
  for (const level of levels.toSorted((a, b) => a - b)) {
    const heavy = bursts.filter(({ calls }) => calls >= level);
    const rest = bursts.flatMap((burst) => {
      const calls = burst.calls >= level ? burst.calls - level : burst.calls;
      return calls > 0 ? [{ ...burst, calls }] : [];
    });
    const first = gapPeriod(burstsOf(heavy, resolutionMs), VERY_REGULAR_SHARE);
    const second = gapPeriod(burstsOf(rest, resolutionMs));
    if (heavy.length > MIN_VISITS && first !== undefined && second !== undefined) {
      return [
        { visits: heavy.map((burst) => ({ ...burst, calls: level })), periodMs: first },
        { visits: rest, periodMs: second },
      ];
    }
  }
  return undefined;
}

/** The period of visits that are about as frequent as samples, if the number of calls over time is steady. */
function callPeriod(
  intervals: ReadonlyMap<number, Visit>,
  { fromMs, toMs, resolutionMs }: Sampling,
): number | undefined {
  const counts = [...intervals.values()].map(({ calls }) => calls);
  const isFull = counts.length * resolutionMs > FULL_SHARE * (toMs - fromMs);
  const callsPerVisit = isFull ? 1 : callsPerVisitOf(counts);
  const visits = sum(counts) / callsPerVisit;
  // With at least three intervals in a window, it hardly matters on which side of a sample a call was.
  const windows = Math.floor(Math.min(visits / MIN_VISITS_OF_WINDOW, (toMs - fromMs) / resolutionMs / 3));
  if (windows < 2) return undefined;
  const inWindow = Array.from({ length: windows }, () => 0);
  for (const [interval, { calls }] of intervals) {
    const window = Math.min(windows - 1, Math.floor(((interval * resolutionMs) / (toMs - fromMs)) * windows));
    inWindow[window] = (inWindow[window] ?? 0) + calls / callsPerVisit;
  }
  const periodMs = (toMs - fromMs) / visits;
  // Intervals with more calls than one client of this period can make come from several clients.
  const maxCalls = (Math.ceil(resolutionMs / periodMs) + 1) * callsPerVisit;
  if (counts.filter((calls) => calls <= maxCalls).length < FITTING_SHARE * counts.length) return undefined;
  const mean = visits / windows;
  const variance = sum(inWindow.map((count) => (count - mean) ** 2)) / windows;
  return variance <= Math.max(STEADY_VARIANCE * mean, (STEADY_DEVIATION * mean) ** 2) ? periodMs : undefined;
}

/** The lowest count, if nearly all counts are multiples of it; otherwise 1. */
function callsPerVisitOf(counts: readonly number[]): number {
  const lowest = Math.min(...counts);
  return counts.filter((calls) => calls % lowest === 0).length >= FITTING_SHARE * counts.length ? lowest : 1;
}
