import { sum } from '../sum.ts';
import type { Visit } from './client-activity.ts';

/** So many of the gaps must be near the median. Chosen limits, without a source, as those below. */
const REGULAR = 0.75;
const SURELY_REGULAR = 0.9;
/** How early or late a periodic client may be, as a share of its period. */
const JITTER = 0.25;
const MIN_VISITS = 3;
const MIN_CALLS = 4;
/** With visits in more of the intervals between samples, the gaps between them don't show. */
const DENSE = 0.4;
/** With visits in nearly all of them, several calls in one are several visits. */
const FULL = 0.9;
/** Fewer calls in one interval may be two visits. */
const MIN_LEVEL = 3;
/** The number of calls in windows of {@link MIN_CALLS} expected ones sways less than that of random visits, whose variance is their mean. */
const STEADY = 0.5;
/** Many calls in a window may sway by so much of their number. */
const SWAY = 0.1;
const MULTIPLES = 0.9;
/** Calls so near to each other are one visit, as a share of the time between samples. */
const TOGETHER = 0.1;

interface Span {
  fromMs: number;
  toMs: number;
  /** The average time between two samples. */
  resolutionMs: number;
  /** Every call was counted; otherwise visits may be missing. */
  countsCalls: boolean;
}

/** Visits of one client, and the period at which they come; undefined if they come at random, or are too few. */
export interface Rhythm {
  visits: readonly Visit[];
  periodMs: number | undefined;
  /** They come at least as often as that: nobody counted them between samples. */
  isFrequent?: true;
}

/**
 * Finds the period of visits (oldest first). The same query of two clients, of which one asks several times at each visit, is told apart
 * if that makes both regular.
 */
export function rhythmsOf(visits: readonly Visit[], span: Span): Rhythm[] {
  const { fromMs, toMs, resolutionMs } = span;
  const inSpan = visits.filter((visit) => visit.fromMs >= fromMs);
  const intervals = byInterval(inSpan, span);
  const counts = new Map([...intervals].map(([interval, { calls }]) => [interval, calls]));
  const density = (counts.size * resolutionMs) / (toMs - fromMs);
  const shown = burstsOf(inSpan, resolutionMs, TOGETHER, 0).length;
  if (!span.countsCalls && shown * resolutionMs > FULL * (toMs - fromMs)) {
    return [{ visits, periodMs: (toMs - fromMs) / shown, isFrequent: true }];
  }
  const periodMs = span.countsCalls && density > DENSE ? undefined : byGaps(burstsOf(inSpan, resolutionMs));
  if (periodMs !== undefined || !span.countsCalls) return [{ visits, periodMs }];
  return (
    (density < FULL ? byLevels([...intervals.values()], resolutionMs) : undefined) ?? [
      { visits, periodMs: byCalls([...counts.entries()], span) },
    ]
  );
}

/** The visits of each interval between samples as one: which of several had how many calls is not known. */
function byInterval(visits: readonly Visit[], { fromMs, resolutionMs }: Span): Map<number, Visit> {
  const intervals = new Map<number, Visit>();
  for (const visit of visits) {
    const interval = Math.floor((visit.fromMs - fromMs) / resolutionMs);
    const { fromMs: atMs, unsureMs, calls } = intervals.get(interval) ?? { ...visit, calls: 0 };
    const low = Math.min(atMs - unsureMs, visit.fromMs - visit.unsureMs);
    const high = Math.max(atMs + unsureMs, visit.fromMs + visit.unsureMs);
    const middleMs = (low + high) / 2;
    const one = { fromMs: middleMs, toMs: middleMs, unsureMs: (high - low) / 2, calls: calls + visit.calls };
    intervals.set(interval, one);
  }
  return intervals;
}

/** Joins visits that may be one. */
function burstsOf(visits: readonly Visit[], resolutionMs: number, near = 0.3, unsure = 1.05): Visit[] {
  const bursts: Visit[] = [];
  for (const visit of visits) {
    const last = bursts.at(-1);
    const nearMs = near * resolutionMs + unsure * (visit.unsureMs + (last?.unsureMs ?? 0));
    if (last && visit.fromMs - last.toMs <= nearMs) {
      last.toMs = Math.max(last.toMs, visit.toMs);
      last.calls += visit.calls;
    } else bursts.push({ ...visit });
  }
  return bursts;
}

function byGaps(bursts: readonly Visit[], regular = REGULAR): number | undefined {
  if (bursts.length < MIN_VISITS) return undefined;
  const gaps = bursts.slice(1).map((visit, index) => {
    const before = bursts[index] as Visit;
    return { ms: visit.fromMs - before.fromMs, unsureMs: 1.2 * (visit.unsureMs + before.unsureMs) };
  });
  const median = gaps.map(({ ms }) => ms).toSorted((a, b) => a - b)[Math.floor(gaps.length / 2)] ?? 0;
  const near = gaps.filter(({ ms, unsureMs }) => Math.abs(ms - median) <= Math.max(JITTER * median, unsureMs));
  // The average is exacter than the median where instants lie between samples.
  return near.length < regular * gaps.length ? undefined : sum(near.map(({ ms }) => ms)) / near.length;
}

/** One client with at least so many calls at each visit, and one with the rest. */
function byLevels(bursts: readonly Visit[], resolutionMs: number): Rhythm[] | undefined {
  const levels = [...new Set(bursts.map(({ calls }) => calls))].filter((level) => level >= MIN_LEVEL);
  for (const level of levels.toSorted((a, b) => a - b)) {
    const heavy = bursts.filter(({ calls }) => calls >= level);
    const rest = bursts.flatMap((burst) => {
      const calls = burst.calls >= level ? burst.calls - level : burst.calls;
      return calls > 0 ? [{ ...burst, calls }] : [];
    });
    const [first, second] = [
      byGaps(burstsOf(heavy, resolutionMs), SURELY_REGULAR),
      byGaps(burstsOf(rest, resolutionMs)),
    ];
    if (heavy.length > MIN_VISITS && first !== undefined && second !== undefined) {
      return [
        { visits: heavy.map((burst) => ({ ...burst, calls: level })), periodMs: first },
        { visits: rest, periodMs: second },
      ];
    }
  }
  return undefined;
}

/** For visits about as often as samples: by how many calls there were in each interval, if that is steady. */
function byCalls(counts: readonly [interval: number, calls: number][], { fromMs, toMs, resolutionMs }: Span) {
  const isFull = counts.length * resolutionMs > FULL * (toMs - fromMs);
  const each = isFull ? 1 : callsEach(counts.map(([, calls]) => calls));
  const visits = sum(counts.map(([, calls]) => calls)) / each;
  // A window has three intervals at least, so that it doesn't matter on which side of a sample a call was.
  const windows = Math.floor(Math.min(visits / MIN_CALLS, (toMs - fromMs) / resolutionMs / 3));
  if (windows < 2) return undefined;
  const inWindow = Array.from({ length: windows }, () => 0);
  for (const [interval, calls] of counts) {
    const at = Math.min(windows - 1, Math.floor(((interval * resolutionMs) / (toMs - fromMs)) * windows));
    inWindow[at] = (inWindow[at] ?? 0) + calls / each;
  }
  const periodMs = (toMs - fromMs) / visits;
  // More in one interval than a client of this period can make: there are several.
  const most = (Math.ceil(resolutionMs / periodMs) + 1) * each;
  if (counts.filter(([, calls]) => calls <= most).length < MULTIPLES * counts.length) return undefined;
  const mean = visits / windows;
  const variance = sum(inWindow.map((count) => (count - mean) ** 2)) / windows;
  return variance <= Math.max(STEADY * mean, (SWAY * mean) ** 2) ? periodMs : undefined;
}

/** How many calls one visit has: the fewest in an interval, if nearly all are multiples of it. */
function callsEach(counts: readonly number[]): number {
  const fewest = Math.min(...counts);
  return counts.filter((calls) => calls % fewest === 0).length >= MULTIPLES * counts.length ? fewest : 1;
}
