import { sum } from '../sum.ts';
import { DAY_MS } from '../time/units.ts';
import { NORMAL_QUANTILE_90, normal } from './normal.ts';

/** A day, by its number and its weekday (0 to 6; Thursday is 0). */
interface Day {
  day: number;
  weekday: number;
}

/** The predicted sum of coming days: a mixture of normal distributions. */
interface Prediction {
  mean: number;
  quantile(probability: number): number;
}

/**
 * `walk` is the standard deviation of the level's daily step, relative to the mean; `prior` is the weight before any data. The largest step, as
 * of a single database that stops or begins, is rarer.
 */
const WALKS = [
  { walk: 0.003, prior: 1 },
  { walk: 0.01, prior: 1 },
  { walk: 0.03, prior: 1 },
  { walk: 0.1, prior: 1 },
  { walk: 0.3, prior: 0.25 },
];
/** `memory`: the correlation of the noise of consecutive days. */
const MODELS = WALKS.flatMap((step) => [0, 0.4, 0.8].map((memory) => ({ ...step, memory })));

/** Prior variances: the weekend may differ from workdays by as much as the mean, each weekday by a tenth of it. */
const WEEKEND_VARIANCE = 1;
const WEEKDAY_VARIANCE = 0.01;
/** The prior of the noise: one more day with a deviation of 2 % of the mean. */
const PRIOR_DAYS = 1;
const PRIOR_DEVIATION = 0.02;
/** The smallest scale of a weekday, as a share of the mean. Near 0, as without usage, its noise would count too much. */
const LEAST_SCALE = 0.02;
/** The smallest variance of the noise, against division by zero. */
const LEAST_VARIANCE = 1e-6;

/**
 * Predicts the sum of the days `ahead`, each weighted by its `part` in (0, 1], from at least two known days, ascending. It is a Gaussian
 * process (Rasmussen and Williams, Gaussian Processes for Machine Learning, 2.2 and 2.7) with an unknown mean: a day is the mean of its
 * weekday, times a level that is a random walk, plus noise that is correlated over some days. The step of the walk and the correlation are
 * unknown, so {@link MODELS} are weighted by their likelihood. The step is relative to the mean, not to the noise: noisy days don't make a
 * fleet grow faster, and a calm week does not prove that its level is fixed.
 */
export function predictSum(
  known: readonly (Day & { value: number })[],
  ahead: readonly (Day & { part: number })[],
): Prediction {
  const scales = scalesOf(known);
  const scaleOf = (weekday: number) => scales[weekday] ?? 1;
  const values = known.map(({ weekday, value }) => value / scaleOf(weekday));
  const parts = ahead.map(({ weekday, part }) => part * scaleOf(weekday));
  const fits = MODELS.map((model) => fitModel({ known, values, ahead, parts }, model));
  return mixture(fits, degreesOfFreedom(known));
}

/**
 * The scale of the noise of each weekday: the mean of the weekday, shrunk towards the mean of workdays or of the weekend, which is itself shrunk
 * towards the overall mean.
 */
function scalesOf(known: readonly (Day & { value: number })[]): number[] {
  const shrunk = (days: readonly { value: number }[], towards: number) =>
    (sum(days.map(({ value }) => value)) + towards) / (days.length + 1);
  const all = sum(known.map(({ value }) => value)) / known.length;
  const ofWorkdays = shrunk(
    known.filter((day) => !isWeekend(day)),
    all,
  );
  const ofWeekend = shrunk(known.filter(isWeekend), all);
  return Array.from({ length: 7 }, (_, weekday) => {
    const sameWeekdays = known.filter((day) => day.weekday === weekday);
    const mean = shrunk(sameWeekdays, isWeekend({ weekday }) ? ofWeekend : ofWorkdays);
    return Math.max(mean, LEAST_SCALE * all) || 1;
  });
}

function isWeekend({ weekday }: Pick<Day, 'weekday'>): boolean {
  return weekday === 2 || weekday === 3;
}

/** The degrees of freedom: one is lost since the mean is estimated from the same days. */
function degreesOfFreedom(known: readonly Day[]): number {
  return known.length - 1 + PRIOR_DAYS;
}

interface Fit {
  mean: number;
  variance: number;
  /** The logarithm of the model's likelihood, weighted by its prior, up to a constant. */
  likelihood: number;
}

interface Problem {
  known: readonly Day[];
  /** The known values, divided by the scale of their weekday. */
  values: readonly number[];
  ahead: readonly Day[];
  parts: readonly number[];
}

/** Fits one model: the mean by generalised least squares, the prediction by the covariance of days. */
function fitModel(problem: Problem, model: (typeof MODELS)[number]): Fit {
  const { known, values, ahead, parts } = problem;
  // The step of the walk is relative to the mean, but the covariance is relative to the noise: fit once to estimate the noise, then again with
  // it.
  const freedom = degreesOfFreedom(known);
  const noise = Math.max(
    leastSquares(problem, covariance(problem, model, varianceOf(values))).squares / freedom,
    LEAST_VARIANCE,
  );
  const covarianceOf = covariance(problem, model, noise);
  const { root, whitenedValues, whitenedOnes, information, mean, squares } = leastSquares(problem, covarianceOf);
  const toAhead = solveForward(
    root,
    known.map((a) => sum(ahead.map((b, index) => (parts[index] ?? 0) * covarianceOf(a, b)))),
  );
  const unexplained = sum(parts) - dot(whitenedOnes, toAhead);
  const varianceAhead = sum(
    ahead.map((a, i) => sum(ahead.map((b, j) => (parts[i] ?? 0) * (parts[j] ?? 0) * covarianceOf(a, b)))),
  );
  const spread = varianceAhead - dot(toAhead, toAhead) + unexplained ** 2 / information;
  const logRoots = sum(root.map((row) => Math.log(row.at(-1) ?? 1))) + 0.5 * Math.log(information);
  return {
    mean: dot(toAhead, whitenedValues) + unexplained * mean,
    variance: (Math.max(0, spread) * squares) / freedom,
    likelihood: -0.5 * freedom * Math.log(squares) - logRoots + Math.log(model.prior),
  };
}

/** Returns the covariance function of two days, in units of the variance of the noise. */
function covariance({ known, ahead }: Problem, { walk, memory }: (typeof MODELS)[number], noise: number) {
  const first = known[0]?.day ?? 0;
  const last = ahead.at(-1)?.day ?? first;
  const remembered = Array.from({ length: last - first + 1 }, (_, days) => memory ** days);
  return (a: Day, b: Day): number => {
    const level = walk ** 2 * (Math.min(a.day, b.day) - first + 1);
    const ofWeekend = isWeekend(a) && isWeekend(b) ? WEEKEND_VARIANCE : 0;
    const ofWeekday = a.weekday === b.weekday ? WEEKDAY_VARIANCE : 0;
    return (remembered[Math.abs(a.day - b.day)] ?? 0) + (level + ofWeekend + ofWeekday) / noise;
  };
}

/** Estimates the mean and the residual sum of squares, including the prior's. */
function leastSquares({ known, values }: Problem, covarianceOf: (a: Day, b: Day) => number) {
  const root = cholesky(known.map((a, i) => known.slice(0, i + 1).map((b) => covarianceOf(a, b))));
  const whitenedValues = solveForward(root, values);
  const whitenedOnes = solveForward(
    root,
    values.map(() => 1),
  );
  const information = dot(whitenedOnes, whitenedOnes);
  const mean = dot(whitenedOnes, whitenedValues) / information;
  const squares =
    Math.max(0, dot(whitenedValues, whitenedValues) - mean ** 2 * information) + PRIOR_DAYS * PRIOR_DEVIATION ** 2;
  return { root, whitenedValues, whitenedOnes, information, mean, squares };
}

function varianceOf(values: readonly number[]): number {
  const mean = sum(values) / values.length;
  return Math.max(sum(values.map((value) => (value - mean) ** 2)) / (values.length - 1), LEAST_VARIANCE);
}

/** Mixes the fits by likelihood. With few days the tails are wider, as in Student's t distribution (first Cornish-Fisher term). */
function mixture(fits: readonly Fit[], freedom: number): Prediction {
  const best = Math.max(...fits.map(({ likelihood }) => likelihood));
  const weights = fits.map(({ likelihood }) => Math.exp(likelihood - best));
  const total = sum(weights);
  const weighted = (figure: (fit: Fit) => number) =>
    sum(fits.map((fit, index) => ((weights[index] ?? 0) / total) * figure(fit)));
  const mean = weighted((fit) => fit.mean);
  const deviation = Math.sqrt(weighted((fit) => fit.variance + (fit.mean - mean) ** 2));
  return {
    mean,
    quantile(probability) {
      const factor = 1 + (NORMAL_QUANTILE_90 * NORMAL_QUANTILE_90 + 1) / (4 * freedom);
      let low = mean - 8 * deviation;
      let high = mean + 8 * deviation;
      // Bisection: 50 steps exhaust the precision of numbers.
      for (let step = 0; step < 50; step += 1) {
        const middle = (low + high) / 2;
        const below = weighted((fit) => normal((middle - fit.mean) / (factor * Math.sqrt(fit.variance) || 1e-9)));
        if (below < probability) low = middle;
        else high = middle;
      }
      return (low + high) / 2;
    },
  };
}

/** The day that starts at `dayMs`, milliseconds since the epoch. */
export function dayAt(dayMs: number): Day {
  const day = Math.floor(dayMs / DAY_MS);
  return { day, weekday: day % 7 };
}

/** Cholesky decomposition: returns L with L·Lᵀ = matrix (symmetric, positive definite); rows of both end at the diagonal. */
function cholesky(matrix: readonly (readonly number[])[]): number[][] {
  const root: number[][] = [];
  for (const [i, row] of matrix.entries()) {
    const rootRow: number[] = [];
    for (let j = 0; j <= i; j += 1) {
      const other = j === i ? rootRow : (root[j] as number[]);
      let rest = row[j] as number;
      for (let k = 0; k < j; k += 1) rest -= (rootRow[k] as number) * (other[k] as number);
      rootRow.push(j === i ? Math.sqrt(rest) : rest / (other[j] as number));
    }
    root.push(rootRow);
  }
  return root;
}

/** Forward substitution: solves L·x = right. */
function solveForward(root: readonly (readonly number[])[], right: readonly number[]): number[] {
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
