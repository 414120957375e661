/** Projects a month from daily usage. Days are in UTC. */
import type { Estimate } from '../estimate.ts';
import { sum } from '../sum.ts';
import { DAY_MS } from '../time/units.ts';
import type { BillingMonth } from './month.ts';
import { NORMAL_QUANTILE_90, normal } from './normal.ts';
import { dayAt, predictSum } from './sum-of-days.ts';

/** CU-seconds, CU-hours or dollars by start of the day (milliseconds since the epoch). Days with unknown hours are missing. */
export type KnownDays = ReadonlyMap<number, number>;

/** A month's total with an 80 % interval. */
export type Projection = Estimate;

/** How many days a projection looks back. */
export const PAST_DAYS = 56;
/** How many known days a projection needs. */
export const MIN_DAYS = 7;
/** The smallest relative uncertainty of the rest of a month, since plans, prices and fleets change. */
const MIN_MARGIN = 0.01;
/** The largest ratio of an interval's ends at which it is still useful to show. */
const MAX_RATIO = 4;

/** A projection by z-score: 0 gives the mean, ±{@link NORMAL_QUANTILE_90} the ends of the 80 % interval. */
type ProjectedAt = (z: number) => number;

interface ProjectedMonth {
  month: BillingMonth;
  /** The usage of the known hours of the month, in the unit of the days. */
  spent: number;
  /** The expected usage of its unknown hours, in the unit of the days. */
  unknown: number;
}

/**
 * Projects a month's total with an 80 % interval: the known hours, the expected usage of unknown ones, and a prediction of the rest from the
 * last eight weeks; see {@link predictSum}. Since unknown hours may have used nothing, the low end counts none of them, the high end twice.
 * Undefined with less than a week of known days.
 */
export function projectMonth(days: KnownDays, month: ProjectedMonth): Projection | undefined {
  const at = projectedAt(days, month);
  return at && { low: at(-NORMAL_QUANTILE_90), mid: at(0), high: at(NORMAL_QUANTILE_90) };
}

/** {@link projectMonth} at any z-score. */
export function projectedAt(days: KnownDays, { month, spent, unknown }: ProjectedMonth): ProjectedAt | undefined {
  const { untilMs, toMs } = month;
  const todayMs = untilMs - (untilMs % DAY_MS);
  const past = [...days]
    .filter(([dayMs]) => dayMs < todayMs && dayMs >= todayMs - PAST_DAYS * DAY_MS)
    .sort(([a], [b]) => a - b)
    .map(([dayMs, value]) => ({ ...dayAt(dayMs), value }));
  if (past.length < MIN_DAYS) return undefined;
  const ahead = Array.from({ length: Math.ceil((toMs - todayMs) / DAY_MS) }, (_, index) => {
    const dayMs = todayMs + index * DAY_MS;
    return { ...dayAt(dayMs), part: (Math.min(dayMs + DAY_MS, toMs) - Math.max(dayMs, untilMs)) / DAY_MS };
  });
  const rest = predictSum(past, ahead);
  const mean = Math.max(0, rest.mean);
  return (z) => {
    const soFar = spent + unknown * Math.max(0, 1 + z / NORMAL_QUANTILE_90);
    if (z === 0 || mean === 0) return Math.max(spent, soFar + mean);
    const distance = rest.quantile(normal(z)) / mean - 1;
    const margin = MIN_MARGIN * (z / NORMAL_QUANTILE_90);
    const widened = z < 0 ? Math.min(distance, margin) : Math.max(distance, margin);
    return Math.max(spent, soFar + mean * gammaQuantile(z, widened));
  };
}

/**
 * Returns the quantile at `z` of a gamma distribution of mean 1, since a sum of usage is skewed and never negative (approximation of Wilson and
 * Hilferty, 1931). `distance` is how far the normal quantile at `z` is above the mean; negative if it is below. For standard deviations above
 * 3.85 the approximation would put the 90 % quantile below the mean, so upper quantiles are at least 1 here.
 */
function gammaQuantile(z: number, distance: number): number {
  const sigma = distance / z;
  return Math.max(z > 0 ? 1 : 0, 1 - sigma ** 2 / 9 + distance / 3) ** 3;
}

/** Why no projection is shown: less than a week of known days, or an interval too wide to be useful. */
export type NotProjected = 'too_few_days' | 'too_wide';

/** The projection to show, or why none is shown. */
export function shownProjection(projected: Projection | undefined): Projection | NotProjected {
  if (!projected) return 'too_few_days';
  return projected.high > MAX_RATIO * projected.low ? 'too_wide' : projected;
}

/**
 * The sum of projections of several organizations. These are assumed to be independent: spreads are added as squares. Within one organization,
 * days are summed before projecting.
 */
export function sumOfProjections(projections: readonly Projection[]): Projection {
  const mid = sum(projections.map((one) => one.mid));
  const spread = (end: 'low' | 'high') => Math.hypot(...projections.map((one) => one[end] - one.mid));
  return { low: mid - spread('low'), mid, high: mid + spread('high') };
}
