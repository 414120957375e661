import { sum } from '../sum.ts';
import { DAY_MS } from '../time/units.ts';
import type { KnownDays } from './projection.ts';

/** A day with far more usage than is usual for its weekday. */
export interface SpendAnomaly {
  dayMs: number;
  used: number;
  /** The upper end of the ordinary range. */
  ordinary: number;
}

/** How many days of the same weekday are compared, at most and at least. */
const MAX_SAME_WEEKDAYS = 12;
const MIN_SAME_WEEKDAYS = 4;
/** How many days {@link anomalyOf} looks at. */
export const ANOMALY_PAST_DAYS = 7 * MAX_SAME_WEEKDAYS + 1;
/** 99.5 % quantiles of Student's t distribution for 3 to 11 degrees of freedom: the upper ends of 99 % intervals. */
const T_QUANTILES = [5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.25, 3.169, 3.106];
/** The smallest deviation of days, as a share of their mean. */
const MIN_DEVIATION = 0.05;

/**
 * Returns yesterday if its usage exceeds the 99 % prediction interval of its weekday (Student's t, up to twelve weeks back), and exceeds
 * the mean of that weekday by at least `minExcess`. Undefined otherwise, or if too few days are known.
 */
export function anomalyOf(
  days: KnownDays,
  { yesterdayMs, minExcess }: { yesterdayMs: number; minExcess: number },
): SpendAnomaly | undefined {
  const used = days.get(yesterdayMs);
  const sameWeekdays = Array.from({ length: MAX_SAME_WEEKDAYS }, (_, week) =>
    days.get(yesterdayMs - (week + 1) * 7 * DAY_MS),
  ).filter((value) => value !== undefined);
  const quantile = T_QUANTILES[sameWeekdays.length - MIN_SAME_WEEKDAYS];
  if (used === undefined || quantile === undefined) return undefined;
  const mean = sum(sameWeekdays) / sameWeekdays.length;
  const squares = sum(sameWeekdays.map((value) => (value - mean) ** 2));
  const deviation = Math.max(Math.sqrt(squares / (sameWeekdays.length - 1)), MIN_DEVIATION * mean);
  const ordinary = mean + quantile * deviation * Math.sqrt(1 + 1 / sameWeekdays.length);
  return used > ordinary && used - mean >= minExcess ? { dayMs: yesterdayMs, used, ordinary } : undefined;
}
