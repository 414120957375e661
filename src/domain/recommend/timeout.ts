import type { Range } from '../awake/causes.ts';
import type { AwakeHistory, AwakeInterval } from '../awake/intervals.ts';
import type { AccountPlan } from '../compute/cost.ts';
import { DAY_MS } from '../time/units.ts';
import { pausesWithin } from './pauses.ts';
import { isSureGain } from './resample.ts';
import { areMemoryless, gapsOf, type Outcome, replay, type Visits, visitsUnder } from './visits.ts';

/**
 * The best timeout is ski rental: each second awake after the last client is the rent, a cold start the price of skis. People decide what
 * a start is worth, in time awake.
 */
export const DEFAULT_COLD_START_WORTH_MS = 300_000;

/** Timeouts under test, in seconds. Beyond an hour a replay says little: work that runs by itself shows. */
const CANDIDATES_SECONDS = [60, 120, 180, 300, 600, 900, 1200, 1800, 2700, 3600];

const LEAST_GAPS = 20;
const LEAST_DAYS = 7;
/** The shortest month: it fluctuates most. */
const MONTH_DAYS = 28;
/** Quantiles at 99.999 % of Student's t distribution, by the number of known days, less one degree of freedom. */
const T_QUANTILES = [
  [LEAST_DAYS, 12.032],
  [10, 8.102],
  [14, 6.501],
  [21, 5.543],
  [28, 5.157],
  [60, 4.638],
  [180, 4.382],
] as const;
/** The assumed duration of a start where none was seen, milliseconds. */
const USUAL_START_MS = 5_000;
/** Instants are whole seconds: an interval may be so much longer than it seems. */
const RESOLUTION_MS = 2_000;
/** A return of clients counts only if it is this much sooner than the timeout. */
const MARGIN_MS = 10_000;

export interface TimeoutProposal {
  suspendTimeoutSeconds: number;
  figure: 'replayed' | 'at_least';
  /** The known length of the log, milliseconds. */
  knownMs: number;
  /** The number of timeouts after which a client came again. */
  gaps: number;
  /** Saved awake milliseconds in that time; negative where it is awake longer and starts less often. Of `at_least`, low is promised. */
  savedMs: Range;
  starts: { before: number; after: Range };
  /** Milliseconds awake in that time. */
  awakeMs: { before: number; after: Range };
}

export interface TimeoutOptions {
  history: AwakeHistory;
  /** Canonical seconds. */
  suspendTimeoutSeconds: number;
  /** Absent: unknown, so nothing is proposed that only some plans allow. */
  plan?: AccountPlan | undefined;
  coldStartWorthMs?: number;
}

/**
 * A timeout that would have been better, or undefined: where the log is short, visits are memoryless, or there is no gain in 95 % of
 * resamples by day. A longer one is replayed. For a shorter one a bound is known and promised: each timeout that passed saves the
 * difference, and additional suspends are at most as many as fit into the rest of the time awake. Their number is estimated.
 */
export function proposeTimeout(options: TimeoutOptions): TimeoutProposal | undefined {
  const { history, suspendTimeoutSeconds, plan, coldStartWorthMs = DEFAULT_COLD_START_WORTH_MS } = options;
  if (!mayChooseTimeout({ plan })) return undefined;
  const visits = visitsUnder(history, suspendTimeoutSeconds);
  if (!visits || visits.knownMs < LEAST_DAYS * DAY_MS) return undefined;
  const gaps = gapsOf(visits);
  if (gaps.length < LEAST_GAPS || areMemoryless(gaps.map((ms) => ms - visits.timeoutMs))) return undefined;
  const now = replay(visits, visits.timeoutMs);
  const startMs = startTimeOf(history);
  const pauses = pausesWithin(visits);
  const tried = CANDIDATES_SECONDS.filter((seconds) => seconds !== suspendTimeoutSeconds).map((seconds) => {
    const isLonger = seconds > suspendTimeoutSeconds;
    const input = { visits, now, seconds, worthMs: coldStartWorthMs };
    return isLonger ? tryLonger(input) : tryShorter({ ...input, startMs, pauses });
  });
  const byGain = tried.filter(({ gainMs }) => gainMs > 0).toSorted((a, b) => b.gainMs - a.gainMs);
  const best = byGain.find(({ isSure }) => isSure());
  if (!best) return undefined;
  return { ...best.proposal(), knownMs: visits.knownMs, gaps: gaps.length };
}

/** Launch allows 300 s or never, Free 300 s alone: everything else is answered with 412. */
export function mayChooseTimeout({ plan }: { plan?: AccountPlan | undefined }): boolean {
  return plan === 'scale';
}

interface Tried {
  /** The gain with starts counted by their worth, milliseconds. */
  gainMs: number;
  /** True if there is a gain in 95 % of resamples by day. */
  isSure(): boolean;
  proposal(): Omit<TimeoutProposal, 'knownMs' | 'gaps'>;
}

interface Trying {
  visits: Visits;
  now: Outcome;
  seconds: number;
  worthMs: number;
}

function tryLonger({ visits, now, seconds, worthMs }: Trying): Tried {
  const longer = replay(visits, 1000 * seconds);
  // A timeout that just covers a gap would miss it tomorrow.
  const missed = replay(visits, 1000 * seconds - MARGIN_MS);
  const gainByDay = now.days.map((day, index) => {
    const { awakeMs, starts } = { ...day, ...longer.days[index], starts: missed.days[index]?.starts ?? day.starts };
    return day.awakeMs - awakeMs + worthMs * (day.starts - starts);
  });
  const saved = now.awakeMs - longer.awakeMs;
  return {
    gainMs: sumOf(gainByDay),
    isSure: () => isSureSum(gainByDay),
    proposal: () => ({
      ...{ suspendTimeoutSeconds: seconds, figure: 'replayed', savedMs: same(saved) },
      starts: { before: now.starts, after: same(longer.starts) },
      awakeMs: { before: now.awakeMs, after: same(longer.awakeMs) },
    }),
  };
}

function tryShorter({
  visits,
  now,
  seconds,
  worthMs,
  startMs,
  pauses,
}: Trying & { startMs: number; pauses: ReturnType<typeof pausesWithin> }): Tried {
  const shorterMs = visits.timeoutMs - 1000 * seconds;
  const firstDay = Math.floor(visits.fromMs / DAY_MS);
  const days = now.days.map(() => ({ suspends: 0, extra: 0 }));
  for (const interval of visits.intervals) {
    const day = days[Math.floor(interval.startMs / DAY_MS) - firstDay];
    if (!day) continue;
    day.suspends += interval.end === 'timeout' ? 1 : 0;
    day.extra += mostMoreSuspends(interval, visits.timeoutMs, 1000 * seconds);
  }
  const savedByDay = days.map(({ suspends, extra }) => suspends * shorterMs - extra * startMs);
  const gainByDay = days.map(({ extra }, index) => (savedByDay[index] ?? 0) - extra * worthMs);
  const extra = sumOf(days.map((day) => day.extra));
  const most = (sumOf(days.map(({ suspends }) => suspends)) + extra) * shorterMs;
  const sure = {
    gainMs: sumOf(gainByDay),
    isSure: () => isSureSum(gainByDay),
  };
  const expected = pauses({ timeoutMs: 1000 * seconds, startWorthMs: worthMs + startMs });
  return {
    ...(expected.gainMs > sure.gainMs ? expected : sure),
    proposal: () => {
      // The month to come fluctuates as the past did, and may begin and end within a visit.
      const marginMs = fluctuationOf(savedByDay) + 2 * shorterMs;
      const promised = isInUse(visits) ? Math.max(0, sumOf(savedByDay) - marginMs) : 0;
      return {
        ...{ suspendTimeoutSeconds: seconds, figure: 'at_least', savedMs: { low: promised, high: most } },
        starts: { before: now.starts, after: { low: now.starts, high: now.starts + extra } },
        awakeMs: { before: now.awakeMs, after: { low: Math.max(0, now.awakeMs - most), high: now.awakeMs - promised } },
      };
    },
  };
}

function isSureSum(gainByDay: readonly number[]): boolean {
  return isSureGain(
    gainByDay.map((gain) => [gain]),
    ([sum = 0]) => sum,
  );
}

/**
 * How much less a month may bring than the known days did, where days fluctuate as much as before. The lower end of a prediction interval
 * for the mean of a month of days (Student's t): of a thousand computes all are above it in 99 of 100 months.
 */
export function fluctuationOf(byDay: readonly number[]): number {
  const known = byDay.length;
  const [, quantile] = T_QUANTILES.findLast(([days]) => days <= known) ?? T_QUANTILES[0];
  const mean = sumOf(byDay) / known;
  const variance = sumOf(byDay.map((value) => (value - mean) ** 2)) / (known - 1);
  return quantile * known * Math.sqrt(variance * (1 / known + 1 / MONTH_DAYS));
}

/** True if the last visit is no longer ago than earlier pauses were: for a database that may be given up the past promises nothing. */
function isInUse({ intervals, toMs }: Visits): boolean {
  const pausesMs = intervals.map(({ endMs }, index) => (intervals[index + 1]?.startMs ?? toMs) - endMs);
  return (pausesMs.at(-1) ?? 0) <= pausesMs.slice(0, -1).reduce((most, ms) => Math.max(most, ms), DAY_MS);
}

/** The most additional suspends that a shorter timeout could have made in one awake stretch. */
export function mostMoreSuspends(
  { startMs, endMs, end }: Pick<AwakeInterval, 'startMs' | 'endMs' | 'end'>,
  timeoutMs: number,
  shorterMs: number,
): number {
  const passedMs = end === 'timeout' ? timeoutMs : 0;
  return Math.max(0, Math.floor((endMs - startMs - passedMs + RESOLUTION_MS) / shorterMs));
}

/** The duration of a start, milliseconds: the 95th percentile of those seen. */
export function startTimeOf({ startDurationsMs }: Pick<AwakeHistory, 'startDurationsMs'>): number {
  return percentile95(startDurationsMs) ?? USUAL_START_MS;
}

function same(value: number): Range {
  return { low: value, high: value };
}

function sumOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}

function percentile95(values: readonly number[]): number | undefined {
  return new Float64Array(values).sort()[Math.floor(0.95 * values.length)];
}
