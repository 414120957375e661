/** Projects a month from daily usage, and finds extraordinary days. Days are those of UTC. */
import { DAY_MS } from '../time/units.ts';
import type { BillingMonth } from './month.ts';

/** By start of the day, milliseconds since the epoch: CU-seconds or dollars; a day that is missing, or of which an hour is, is unknown. */
export type KnownDays = ReadonlyMap<number, number>;

export interface Projected {
  low: number;
  mid: number;
  high: number;
}

/** A projection looks back this many days, and needs this many known ones. */
export const PAST_DAYS = 56;
export const FEWEST_DAYS = 7;
/** Plans, prices and fleets change: the rest of a month is never known better than to this share. */
const LEAST_MARGIN = 0.01;
/** An interval whose upper end is more than this many times the lower helps nobody: it is not shown. */
const WIDEST = 4;

/**
 * Projects a month's total, with an interval of 80 %: the known days, and the remaining ones as the last eight weeks were; see {@link
 * predictSum}. Undefined with fewer than a week of known days. The one method for owners, totals and budgets.
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
  // Levels multiply: an equally likely deviation is larger above the middle than below.
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

/** The projection as it is shown, or why there is none. */
export function shownProjection(projected: Projected | undefined): Projected | NotProjected {
  if (!projected) return 'too_few_days';
  return projected.high > WIDEST * projected.low ? 'too_wide' : projected;
}

/** The sum of organizations' projections, which are taken as independent; the owners of one organization are summed by day instead. */
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
  /** The upper end of the ordinary range. */
  ordinary: number;
}

/** As many days of that weekday are looked at, and fewer say nothing. */
const MOST_ALIKE = 12;
export const ANOMALY_PAST_DAYS = 7 * MOST_ALIKE + 1;
const FEWEST_ALIKE = 4;
/** Quantiles at 99.5 % of Student's t distribution for 3 to 11 degrees of freedom: the upper ends of intervals of 99 %. */
const T_QUANTILES = [5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.25, 3.169, 3.106];
/** Days that are all alike still differ by this share of their mean. */
const LEAST_DEVIATION = 0.05;

/**
 * Yesterday, if its usage exceeds the upper end of the 99 % prediction interval of its weekday (Student's t, up to twelve weeks back), and
 * the mean of these days by at least `least`. Undefined if it does not, or too little is known.
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

/**
 * Predicts the sum of the coming days from known ones. A day is the mean of its weekday, on a level that wanders, with noise that lasts
 * for some days: a Gaussian process (Rasmussen and Williams, Gaussian Processes for Machine Learning, 2.2 and 2.7) with a mean of which
 * nothing is assumed. The wandering of the level and the persistence of noise are unknown: each of {@link MODELS} counts by how well it
 * explains the days. The level wanders by a share of the mean, not of the noise: a fleet grows or shrinks no faster because its days are
 * noisy, and a week of calm days does not show that its level is fixed.
 */

/** A day, or a part of one: its number from any start on, and which weekday it is (0 to 6, Thursday is 0). */
interface Day {
  day: number;
  weekday: number;
}

/** The sum of days that come: a mixture of normal distributions. */
interface Predicted {
  mean: number;
  /** The value below which it is with this probability. */
  quantile(probability: number): number;
}

/** Standard deviation that the level gains in a day, as a share of the mean; and the correlation of the noise of two days in a row. */
const MODELS = [0.003, 0.01, 0.03, 0.1].flatMap((walk) => [0, 0.4, 0.8].map((memory) => ({ walk, memory })));

/** Before anything is known the weekend may differ from workdays by as much as the mean, and each weekday by a tenth (variances). */
const WEEKEND_VARIANCE = 1;
const WEEKDAY_VARIANCE = 0.01;
/** Noise is estimated as if one more day had been known, which was off by 2 % of the mean. */
const PRIOR_DAYS = 1;
const PRIOR_DEVIATION = 0.02;
/** A weekday that was hardly ever used still has this share of the mean, or its noise would have no scale. */
const LEAST_SCALE = 0.02;
/** The variance of the noise that a model starts from is at least so large: against a division by zero. */
const LEAST_VARIANCE = 1e-6;

/** `ahead` has for each day that comes how much of it counts, in (0, 1]. At least two known days, ascending. */
function predictSum(
  known: readonly (Day & { value: number })[],
  ahead: readonly (Day & { part: number })[],
): Predicted {
  const scales = scalesOf(known);
  const scaleOf = (weekday: number) => scales[weekday] ?? 1;
  const values = known.map(({ weekday, value }) => value / scaleOf(weekday));
  const parts = ahead.map(({ weekday, part }) => part * scaleOf(weekday));
  const fits = MODELS.map((model) => fitted({ known, values, ahead, parts }, model));
  return mixture(fits, freedomOf(known));
}

/** The scale of each weekday's noise: its mean, shrunk towards that of workdays or of the weekend, and that towards the mean of all. */
function scalesOf(known: readonly (Day & { value: number })[]): number[] {
  const drawn = (own: readonly { value: number }[], towards: number) =>
    (sum(own.map(({ value }) => value)) + towards) / (own.length + 1);
  const all = sum(known.map(({ value }) => value)) / known.length;
  const ofWorkdays = drawn(
    known.filter((one) => !isWeekend(one)),
    all,
  );
  const ofWeekend = drawn(known.filter(isWeekend), all);
  return Array.from({ length: 7 }, (_, weekday) => {
    const own = known.filter((one) => one.weekday === weekday);
    const mean = drawn(own, isWeekend({ weekday }) ? ofWeekend : ofWorkdays);
    return Math.max(mean, LEAST_SCALE * all) || 1;
  });
}

function isWeekend({ weekday }: Pick<Day, 'weekday'>): boolean {
  return weekday === 2 || weekday === 3;
}

/** The mean is estimated from the same days. */
function freedomOf(known: readonly Day[]): number {
  return known.length - 1 + PRIOR_DAYS;
}

interface Fit {
  mean: number;
  variance: number;
  /** The logarithm of its likelihood, but for a constant. */
  likelihood: number;
}

interface Problem {
  known: readonly Day[];
  /** With the scale of their weekday. */
  values: readonly number[];
  ahead: readonly Day[];
  parts: readonly number[];
}

/** Fits one model: its mean by generalised least squares, the prediction from the covariance of days. */
function fitted(problem: Problem, model: (typeof MODELS)[number]): Fit {
  const { known, values, ahead, parts } = problem;
  // The level is given as a share of the mean, and the noise is estimated: the second time with the ratio that the first has found.
  const freedom = freedomOf(known);
  const noise = Math.max(
    squaresOf(problem, covariance(problem, model, varianceOf(values))).squares / freedom,
    LEAST_VARIANCE,
  );
  const together = covariance(problem, model, noise);
  const { root, y, ones, information, mean, squares } = squaresOf(problem, together);
  const toAhead = forward(
    root,
    known.map((a) => sum(ahead.map((b, index) => (parts[index] ?? 0) * together(a, b)))),
  );
  const unexplained = sum(parts) - dot(ones, toAhead);
  const own = sum(ahead.map((a, i) => sum(ahead.map((b, j) => (parts[i] ?? 0) * (parts[j] ?? 0) * together(a, b)))));
  const spread = own - dot(toAhead, toAhead) + unexplained ** 2 / information;
  const logRoots = sum(root.map((row) => Math.log(row.at(-1) ?? 1))) + 0.5 * Math.log(information);
  return {
    mean: dot(toAhead, y) + unexplained * mean,
    variance: (Math.max(0, spread) * squares) / freedom,
    likelihood: -0.5 * freedom * Math.log(squares) - logRoots,
  };
}

/** The covariance of two days, in units of the variance of the noise. */
function covariance({ known, ahead }: Problem, { walk, memory }: (typeof MODELS)[number], noise: number) {
  const first = known[0]?.day ?? 0;
  const last = ahead.at(-1)?.day ?? first;
  const remembered = Array.from({ length: last - first + 1 }, (_, days) => memory ** days);
  return (a: Day, b: Day): number => {
    const level = walk ** 2 * (Math.min(a.day, b.day) - first + 1);
    const weekend = isWeekend(a) && isWeekend(b) ? WEEKEND_VARIANCE : 0;
    const weekday = a.weekday === b.weekday ? WEEKDAY_VARIANCE : 0;
    return (remembered[Math.abs(a.day - b.day)] ?? 0) + (level + weekend + weekday) / noise;
  };
}

/** The estimated mean, and the sum of squares that is left, with that of the prior. */
function squaresOf({ known, values }: Problem, together: (a: Day, b: Day) => number) {
  const root = cholesky(known.map((a, i) => known.slice(0, i + 1).map((b) => together(a, b))));
  const y = forward(root, values);
  const ones = forward(
    root,
    values.map(() => 1),
  );
  const information = dot(ones, ones);
  const mean = dot(ones, y) / information;
  const squares = Math.max(0, dot(y, y) - mean ** 2 * information) + PRIOR_DAYS * PRIOR_DEVIATION ** 2;
  return { root, y, ones, information, mean, squares };
}

function varianceOf(values: readonly number[]): number {
  const mean = sum(values) / values.length;
  return Math.max(sum(values.map((value) => (value - mean) ** 2)) / (values.length - 1), LEAST_VARIANCE);
}
/** The variance is itself estimated: with few days the tails are those of Student's t distribution. Cornish and Fisher's first term. */
function mixture(fits: readonly Fit[], freedom: number): Predicted {
  const best = Math.max(...fits.map(({ likelihood }) => likelihood));
  const weights = fits.map(({ likelihood }) => Math.exp(likelihood - best));
  const total = sum(weights);
  const weighted = (figure: (one: Fit) => number) =>
    sum(fits.map((one, index) => ((weights[index] ?? 0) / total) * figure(one)));
  const mean = weighted((one) => one.mean);
  const tails = (z: number) => 1 + (z * z + 1) / (4 * freedom);
  const deviation = Math.sqrt(weighted((one) => one.variance + (one.mean - mean) ** 2));
  return {
    mean,
    quantile(probability) {
      const factor = tails(TEN_PERCENT);
      let [low, high] = [mean - 8 * deviation, mean + 8 * deviation];
      for (let step = 0; step < 50; step += 1) {
        const middle = (low + high) / 2;
        const below = weighted((one) => normal((middle - one.mean) / (factor * Math.sqrt(one.variance) || 1e-9)));
        if (below < probability) low = middle;
        else high = middle;
      }
      return (low + high) / 2;
    },
  };
}

/** Of the standard normal distribution: a tenth is beyond it. */
const TEN_PERCENT = 1.2816;

/** The standard normal distribution function. Abramowitz and Stegun, 7.1.26: to 1.5e-7. */
function normal(z: number): number {
  const x = Math.abs(z) / Math.SQRT2;
  const t = 1 / (1 + 0.3275911 * x);
  const series = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t;
  const erf = 1 - series * Math.exp(-x * x);
  return z < 0 ? (1 - erf) / 2 : (1 + erf) / 2;
}

/** The lower triangle L with L·Lᵀ the matrix, which is symmetric and positive definite; rows of both end at the diagonal. */
function cholesky(matrix: readonly (readonly number[])[]): number[][] {
  const root: number[][] = [];
  for (const [i, row] of matrix.entries()) {
    const own: number[] = [];
    for (let j = 0; j <= i; j += 1) {
      const other = j === i ? own : (root[j] as number[]);
      let rest = row[j] as number;
      for (let k = 0; k < j; k += 1) rest -= (own[k] as number) * (other[k] as number);
      own.push(j === i ? Math.sqrt(rest) : rest / (other[j] as number));
    }
    root.push(own);
  }
  return root;
}

/** The x with L·x the right side. */
function forward(root: readonly (readonly number[])[], right: readonly number[]): number[] {
  const x: number[] = [];
  for (const [i, row] of root.entries()) {
    let rest = right[i] as number;
    for (let k = 0; k < i; k += 1) rest -= (row[k] as number) * (x[k] as number);
    x.push(rest / (row[i] as number));
  }
  return x;
}

function dot(a: readonly number[], b: readonly number[]): number {
  let total = 0;
  for (let index = 0; index < a.length; index += 1) total += (a[index] as number) * (b[index] as number);
  return total;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
