/**
 * What the days that come will be together, from days that are known. A day is the mean of its weekday, times a level that wanders, times
 * noise that lasts for some days: a Gaussian process (Rasmussen and Williams, Gaussian Processes for Machine Learning, 2.2 and 2.7)
 * with a mean for each weekday that nothing is assumed of. How far the level wanders and how long noise lasts is not known: each
 * of {@link MODELS} counts by how well it explains the days.
 */

/** A day, or a part of one: its number from any start on, and which weekday it is (0 to 6). */
export interface Day {
  day: number;
  weekday: number;
}

/** The sum of days that come: a mixture of normal distributions. */
interface Predicted {
  mean: number;
  /** The value below which it is with this probability. */
  quantile(probability: number): number;
}

/** Variance that the level gains in a day, as a share of that of the noise; and the correlation of the noise of two days in a row. */
const MODELS = [0.001, 0.006, 0.03, 0.12, 0.5].flatMap((walk) => [0, 0.35, 0.65].map((memory) => ({ walk, memory })));

/** With fewer known days there is one mean for all of them. */
const FEWEST_FOR_WEEKDAYS = 21;
/** A weekday that was hardly ever used still has this share of the mean, or its noise would have no scale. */
const LEAST_SCALE = 0.02;
/** Against days that are all the same: a variance of 0 has no logarithm. */
const LEAST_VARIANCE = 1e-12;

/** `ahead` has for each day that comes how much of it counts, in (0, 1]. At least two known days, ascending. */
export function predictSum(
  known: readonly (Day & { value: number })[],
  ahead: readonly (Day & { part: number })[],
): Predicted {
  const scaleOf = scales(known);
  const values = known.map(({ weekday, value }) => value / scaleOf(weekday));
  const parts = ahead.map(({ weekday, part }) => part * scaleOf(weekday));
  const groups = groupsOf(known);
  const inGroups = (days: readonly Day[], valueAt: (index: number) => number) =>
    groups.map((weekdays) => days.map(({ weekday }, index) => (weekdays.has(weekday) ? valueAt(index) : 0)));
  const indicators = inGroups(known, () => 1);
  const means = inGroups(ahead, (index) => parts[index] ?? 0).map(sum);
  const freedom = known.length - groups.length;
  const fits = MODELS.map((model) => fitted({ known, values, ahead, parts, indicators, means, freedom }, model));
  return mixture(fits, freedom);
}

/** The mean of each weekday, by which its noise scales. */
function scales(known: readonly (Day & { value: number })[]): (weekday: number) => number {
  const all = sum(known.map(({ value }) => value)) / known.length;
  const scale = Array.from({ length: 7 }, (_, weekday) => {
    const own = known.filter((one) => one.weekday === weekday);
    const mean = own.length === 0 ? all : sum(own.map(({ value }) => value)) / own.length;
    return Math.max(mean, LEAST_SCALE * all) || 1;
  });
  return (weekday) => scale[weekday] ?? 1;
}

/** Weekdays that share a mean: each has its own once there are enough days. */
function groupsOf(known: readonly Day[]): ReadonlySet<number>[] {
  const weekdays = [0, 1, 2, 3, 4, 5, 6];
  const isEnough =
    known.length >= FEWEST_FOR_WEEKDAYS && weekdays.every((weekday) => known.some((one) => one.weekday === weekday));
  return isEnough ? weekdays.map((weekday) => new Set([weekday])) : [new Set(weekdays)];
}

interface Fit {
  mean: number;
  variance: number;
  /** The logarithm of its likelihood, but for a constant. */
  likelihood: number;
}

interface Problem {
  known: readonly Day[];
  values: readonly number[];
  ahead: readonly Day[];
  parts: readonly number[];
  /** One row for each mean: the known days that have it, and how much of it is to come. */
  indicators: readonly (readonly number[])[];
  means: readonly number[];
  freedom: number;
}

/** One model: its means by generalised least squares, and the rest from how days vary together. */
function fitted(problem: Problem, { walk, memory }: (typeof MODELS)[number]): Fit {
  const { known, values, ahead, parts, indicators, means, freedom } = problem;
  const first = known[0]?.day ?? 0;
  const last = ahead.at(-1)?.day ?? first;
  const remembered = Array.from({ length: last - first + 1 }, (_, days) => memory ** days);
  const together = (a: Day, b: Day) =>
    (remembered[Math.abs(a.day - b.day)] ?? 0) + walk * (Math.min(a.day, b.day) - first + 1);
  const root = cholesky(known.map((a) => known.map((b) => together(a, b))));
  const solved = (right: readonly number[]) => forward(root, right);
  const y = solved(values);
  const rows = indicators.map(solved);
  const toAhead = solved(known.map((a) => sum(ahead.map((b, index) => (parts[index] ?? 0) * together(a, b)))));
  const gram = cholesky(rows.map((a) => rows.map((b) => dot(a, b))));
  const estimate = forward(
    gram,
    rows.map((row) => dot(row, y)),
  );
  const unexplained = forward(
    gram,
    means.map((mean, index) => mean - dot(rows[index] ?? [], toAhead)),
  );
  const squares = Math.max(dot(y, y) - dot(estimate, estimate), LEAST_VARIANCE);
  const own = sum(ahead.map((a, i) => sum(ahead.map((b, j) => (parts[i] ?? 0) * (parts[j] ?? 0) * together(a, b)))));
  const spread = own - dot(toAhead, toAhead) + dot(unexplained, unexplained);
  const logRoots = sum([root, gram].flatMap((matrix) => matrix.map((row) => Math.log(row.at(-1) ?? 1))));
  return {
    mean: dot(toAhead, y) + dot(unexplained, estimate),
    variance: (Math.max(0, spread) * squares) / freedom,
    likelihood: -0.5 * freedom * Math.log(squares) - logRoots,
  };
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

/** The lower triangle L with L·Lᵀ the matrix, which is symmetric and positive definite; its rows end at the diagonal. */
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
