/** From what was used by day: what a month will be, and which day is out of the ordinary. Days are those of UTC. */
import { DAY_MS } from './known.ts';
import type { BillingMonth } from './month.ts';

/** By start of the day, milliseconds since the epoch: CU-seconds or dollars; a day that is missing, or of which an hour is, is unknown. */
export type KnownDays = ReadonlyMap<number, number>;

export interface Projected {
  low: number;
  mid: number;
  high: number;
}

/** A projection looks back so far, and needs so many known days. */
const PAST_DAYS = 28;
const FEWEST_DAYS = 7;
/** Of the standard normal distribution: 80 % lie within. */
const OF_80_PERCENT = 1.2816;

/**
 * What a month will be in all, with an interval of 80 %: what is known of it, and for each day that is left the mean of that weekday in
 * the last 28 known days. The spread is that of days around the mean of their weekday, and that of these means. Undefined with fewer
 * than a week of known days.
 */
export function projectMonth(
  days: KnownDays,
  { month, spent, unknownHours }: { month: BillingMonth; spent: number; unknownHours: number },
): Projected | undefined {
  const todayMs = month.untilMs - (month.untilMs % DAY_MS);
  const past = [...days].filter(([dayMs]) => dayMs < todayMs && dayMs >= todayMs - PAST_DAYS * DAY_MS);
  if (past.length < FEWEST_DAYS) return undefined;
  const byWeekday = new Map<number, number[]>();
  for (const [dayMs, value] of past)
    byWeekday.set(weekdayOf(dayMs), [...(byWeekday.get(weekdayOf(dayMs)) ?? []), value]);
  const means = new Map([...byWeekday].map(([weekday, values]) => [weekday, meanOf(values)]));
  const all = meanOf(past.map(([, value]) => value));
  const meanAt = (dayMs: number) => means.get(weekdayOf(dayMs)) ?? all;
  const squares = past.reduce((sum, [dayMs, value]) => sum + (value - meanAt(dayMs)) ** 2, 0);
  const variance = squares / Math.max(1, past.length - means.size);
  let mid = spent + (unknownHours / 24) * all;
  let spread = 0;
  const left = new Map<number, number>();
  for (let dayMs = todayMs; dayMs < month.toMs; dayMs += DAY_MS) {
    const part = (Math.min(dayMs + DAY_MS, month.toMs) - Math.max(dayMs, month.untilMs)) / DAY_MS;
    mid += part * meanAt(dayMs);
    spread += part ** 2 * variance;
    left.set(weekdayOf(dayMs), (left.get(weekdayOf(dayMs)) ?? 0) + part);
  }
  for (const [weekday, parts] of left) {
    spread += (parts ** 2 * variance) / (byWeekday.get(weekday)?.length ?? past.length);
  }
  const half = OF_80_PERCENT * Math.sqrt(spread);
  return { low: Math.max(spent, mid - half), mid, high: mid + half };
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
