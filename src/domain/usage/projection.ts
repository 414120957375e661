/** From what was used by day: what a month will be, and which day is out of the ordinary. Days are those of UTC. */
import { DAY_MS } from './known.ts';
import { predictSum } from './level-model.ts';
import type { BillingMonth } from './month.ts';

/** By start of the day, milliseconds since the epoch: CU-seconds or dollars; a day that is missing, or of which an hour is, is unknown. */
export type KnownDays = ReadonlyMap<number, number>;

export interface Projected {
  low: number;
  mid: number;
  high: number;
}

/** A projection looks back so far, in days, and needs so many of them known. */
export const PAST_DAYS = 56;
export const FEWEST_DAYS = 7;
/** Plans, prices and fleets change: what is left of a month is never known better than to this share. */
const LEAST_MARGIN = 0.01;
/** An interval whose upper end is more than so many times the lower helps nobody: it is not shown. */
const WIDEST = 4;

/**
 * What a month will be in all, with an interval of 80 %: what is known of it, and the days that are left as the last eight weeks were; see
 * {@link predictSum}. Undefined with fewer than a week of known days. The one method for owners, totals and budgets.
 */
export function projectMonth(
  days: KnownDays,
  { month, spent, unknownHours }: { month: BillingMonth; spent: number; unknownHours: number },
): Projected | undefined {
  const { untilMs, toMs } = month;
  const todayMs = untilMs - (untilMs % DAY_MS);
  const past = [...days]
    .filter(([dayMs]) => dayMs < todayMs && dayMs >= todayMs - PAST_DAYS * DAY_MS)
    .sort(([a], [b]) => a - b)
    .map(([dayMs, value]) => ({ ...dayOf(dayMs), value }));
  if (past.length < FEWEST_DAYS) return undefined;
  const known = spent + (unknownHours / 24) * meanOf(past.map(({ value }) => value));
  const ahead = Array.from({ length: Math.ceil((toMs - todayMs) / DAY_MS) }, (_, index) => {
    const dayMs = todayMs + index * DAY_MS;
    return { ...dayOf(dayMs), part: (Math.min(dayMs + DAY_MS, toMs) - Math.max(dayMs, untilMs)) / DAY_MS };
  });
  const rest = predictSum(past, ahead);
  // Levels multiply: what is above the middle is further from it than what is as likely below.
  const mean = Math.max(0, rest.mean);
  const end = (probability: number, margin: number) => {
    if (mean === 0) return 0;
    const off = rest.quantile(probability) / mean - 1;
    return mean * Math.exp(margin < 0 ? Math.min(off, margin) : Math.max(off, margin));
  };
  const upTo = (value: number) => Math.max(spent, known + value);
  return { low: upTo(end(0.1, -LEAST_MARGIN)), mid: upTo(mean), high: upTo(end(0.9, LEAST_MARGIN)) };
}

/** Why no projection is shown: fewer than a week of known days, or an interval that is too wide to help. */
export type NotProjected = 'too_few_days' | 'too_wide';

/** What is shown of a projection, or why none is. */
export function shownProjection(projected: Projected | undefined): Projected | NotProjected {
  if (!projected) return 'too_few_days';
  return projected.high > WIDEST * projected.low ? 'too_wide' : projected;
}

/** The sum of what is projected of organizations, which are taken as independent; of the owners of one the days are added up instead. */
export function sumOfRanges(ranges: readonly Projected[]): Projected {
  const mid = ranges.reduce((sum, range) => sum + range.mid, 0);
  const spread = (end: 'low' | 'high') => Math.hypot(...ranges.map((range) => range[end] - range.mid));
  return { low: mid - spread('low'), mid, high: mid + spread('high') };
}

function dayOf(dayMs: number) {
  return { day: Math.floor(dayMs / DAY_MS), weekday: weekdayOf(dayMs) };
}

/** A day that used far more than that weekday does. */
export interface SpendAnomaly {
  dayMs: number;
  used: number;
  /** The upper end of what is ordinary. */
  ordinary: number;
}

/** As many days of that weekday are looked at, and fewer say nothing. */
const MOST_ALIKE = 12;
/** How far back these are. */
export const ANOMALY_PAST_DAYS = 7 * MOST_ALIKE + 1;
const FEWEST_ALIKE = 4;
/** Quantiles at 99.5 % of Student's t distribution for 3 to 11 degrees of freedom: the upper ends of intervals of 99 %. */
const T_QUANTILES = [5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.25, 3.169, 3.106];
/** Days that are all alike still differ by so much of their mean. */
const LEAST_DEVIATION = 0.05;

/**
 * Yesterday, if it used more than the upper end of the 99 % prediction interval of its weekday (Student's t, up to twelve weeks back), and
 * at least `least` more than the mean of these days. Undefined if it did not, or too little is known.
 */
export function anomalyOf(
  days: KnownDays,
  { yesterdayMs, least }: { yesterdayMs: number; least: number },
): SpendAnomaly | undefined {
  const used = days.get(yesterdayMs);
  const alike = Array.from({ length: MOST_ALIKE }, (_, week) => days.get(yesterdayMs - (week + 1) * 7 * DAY_MS)).filter(
    (value) => value !== undefined,
  );
  const quantile = T_QUANTILES[alike.length - FEWEST_ALIKE];
  if (used === undefined || quantile === undefined) return undefined;
  const mean = meanOf(alike);
  const squares = alike.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  const deviation = Math.max(Math.sqrt(squares / (alike.length - 1)), LEAST_DEVIATION * mean);
  const ordinary = mean + quantile * deviation * Math.sqrt(1 + 1 / alike.length);
  return used > ordinary && used - mean >= least ? { dayMs: yesterdayMs, used, ordinary } : undefined;
}

function weekdayOf(dayMs: number): number {
  return Math.floor(dayMs / DAY_MS) % 7;
}

function meanOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
