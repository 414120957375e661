/**
 * The confidence interval of an effect by inverting a randomisation test: all effects that the test does not reject. The test compares
 * the score of the real draw with scores of other draws. It is exact for no effect, and for an effect that all units share, whatever the
 * noise. Sources: Imbens and Rubin, *Causal Inference* (2015), chapter 5; docs/savings.md.
 */

import type { Estimate, Range } from '../estimate.ts';
import { seededRandom } from '../random.ts';
import { type Cells, isControlCell } from './cells.ts';

/** The number of other draws to compare with. */
export const DRAWS = 2000;
/** The largest measurable effect on log usage: a hundredfold or a hundredth. */
const MAX_EFFECT = Math.log(100);
/** The precision of an interval's ends. */
const EFFECT_PRECISION = 1e-4;
/** The first step outwards from the estimate in the search for an end. */
const FIRST_STEP = 0.05;

/** Tests assumed effects b, on log usage, against the real draw of a trial. */
export interface EffectTest {
  /** The deviation of an effect's score in standard deviations: 0 at the best estimate, decreasing with b. */
  statistic(b: number): number;
  /** One-sided p-values: the probabilities that the score of a draw is at most (low), or at least (high), the score of the real draw. */
  pValues(b: number): Range;
}

/** Creates the test. Draws with a fixed seed, so that the same data give the same interval. */
export function effectTest(cells: Cells, { seed = 1, draws = DRAWS } = {}): EffectTest {
  const { oneOf, slots } = cells;
  const random = seededRandom(seed);
  const scoresOf = scoreFunction(cells);
  const drawnSlots = Uint8Array.from({ length: draws * slots.length }, () => Math.floor(random() * oneOf));
  const sumAt = (h: Float64Array, assigned: Uint8Array, offset: number) => {
    let sum = 0;
    for (let row = 0; row < slots.length; row += 1) sum += h[row * oneOf + (assigned[offset + row] ?? 0)] ?? 0;
    return sum;
  };
  return {
    statistic(b) {
      const h = scoresOf(b);
      const { mean, variance } = momentsOf(h, oneOf);
      return variance === 0 ? 0 : (sumAt(h, slots, 0) - mean) / Math.sqrt(variance);
    },
    pValues(b) {
      const h = scoresOf(b);
      const realSum = sumAt(h, slots, 0);
      // Sums of the same numbers may differ in the last digits.
      const slack = 1e-9 * Math.sqrt(momentsOf(h, oneOf).variance);
      let [lowCount, highCount] = [1, 1];
      for (let draw = 0; draw < draws; draw += 1) {
        const sum = sumAt(h, drawnSlots, draw * slots.length);
        if (sum <= realSum + slack) lowCount += 1;
        if (sum >= realSum - slack) highCount += 1;
      }
      return { low: lowCount / (draws + 1), high: highCount / (draws + 1) };
    },
  };
}

/** The mean and variance of the sum of scores, if each unit is drawn to each slot with equal probability. */
function momentsOf(h: Float64Array, oneOf: number): { mean: number; variance: number } {
  let [mean, variance] = [0, 0];
  for (let from = 0; from < h.length; from += oneOf) {
    let [sum, squares] = [0, 0];
    for (let slot = 0; slot < oneOf; slot += 1) {
      const score = h[from + slot] ?? 0;
      sum += score;
      squares += score * score;
    }
    mean += sum / oneOf;
    variance += squares / oneOf - (sum / oneOf) ** 2;
  }
  return { mean, variance };
}

/**
 * The saved share, 1 − exp(b), with the interval that covers it with probability `level`. Null if the interval is not bounded on both sides,
 * because of too few units or no usage.
 */
export function savedShare(test: EffectTest, level = 0.95): Estimate | null {
  const mid = estimateOf(test);
  if (mid === undefined) return null;
  const tail = (1 - level) / 2;
  const highestEffect = lastNotRejected(mid, 1, (b) => test.pValues(b).low <= tail);
  const lowestEffect = lastNotRejected(mid, -1, (b) => test.pValues(b).high <= tail);
  if (highestEffect === undefined || lowestEffect === undefined) return null;
  return { low: shareOf(highestEffect), mid: shareOf(mid), high: shareOf(lowestEffect) };
}

/** The saving of an effect on the logarithm of usage, as a share of the usage without it. */
function shareOf(b: number): number {
  return 1 - Math.exp(b);
}

/** The best estimate of the effect: its score is as expected. Undefined if there is none. */
function estimateOf(test: EffectTest): number | undefined {
  if (test.statistic(-MAX_EFFECT) <= 0 || test.statistic(MAX_EFFECT) >= 0) return undefined;
  let [low, high] = [-MAX_EFFECT, MAX_EFFECT];
  while (high - low > EFFECT_PRECISION / 10) {
    const middle = (low + high) / 2;
    if (test.statistic(middle) > 0) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}

/** The last effect outwards that is not rejected, found with doubling steps and bisection; undefined if none is rejected. */
function lastNotRejected(fromB: number, sign: 1 | -1, isRejected: (b: number) => boolean): number | undefined {
  let inside = fromB;
  let step = sign * FIRST_STEP;
  while (!isRejected(inside + step)) {
    inside += step;
    step *= 2;
    if (Math.abs(inside + step) > MAX_EFFECT) return undefined;
  }
  let outside = inside + step;
  while (Math.abs(outside - inside) > EFFECT_PRECISION) {
    const middle = (inside + outside) / 2;
    if (isRejected(middle)) outside = middle;
    else inside = middle;
  }
  return inside;
}

/*
 * Scores tell how well an assumed effect b explains the measurements. If a treated unit-day uses exp(b) times its usage as control, then
 * y·exp(−b·D) is the usage of each cell as control, whatever was drawn. Any remaining dependence on the draw is evidence against b.
 */

/** The maximum rounds of fitting. Complete tables need one, and the test is exact for any number. */
const MAX_ROUNDS = 60;
const MIN_CHANGE = 1e-9;

/** The known cells of a table as parallel columns. */
interface KnownCells {
  row: Uint32Array;
  column: Uint32Array;
  value: Float64Array;
}

/**
 * Returns a function that computes the scores h of an effect b. `h[row * oneOf + slot]` is the score that the unit of this row would have in this
 * slot: the sum of the unit's residuals on the days on which the slot is treated.
 */
export function scoreFunction(cells: Cells): (b: number) => Float64Array {
  const { slots, periodOf, periods } = cells;
  const known = knownCells(cells.values, periodOf.length);
  const { row, column, value } = known;
  const period = Uint32Array.from(column, (at) => periodOf[at] ?? 0);
  const isControl = value.map((_, cell) => Number(isControlCell(cells, at(row, cell), at(column, cell))));
  return (b) => {
    const factor = Math.exp(-b);
    const y = value.map((measured, cell) => (isControl[cell] === 1 ? measured : measured * factor));
    const fit = fitRowsAndColumns({ row, column, value: y }, slots.length, periodOf.length);
    const byPeriod = new Float64Array(slots.length * periods);
    for (let cell = 0; cell < y.length; cell += 1) {
      const residual = at(y, cell) - at(fit.row, row[cell]) * at(fit.column, column[cell]);
      add(byPeriod, at(row, cell) * periods + at(period, cell), residual);
    }
    return scoresOfPeriods(cells, byPeriod);
  };
}

/** The known cells of a table, in which NaN is unknown, by row and then column. */
export function knownCells(values: Float64Array, columns: number): KnownCells {
  const places = Uint32Array.from([...values.keys()].filter((index) => !Number.isNaN(values[index])));
  return {
    row: places.map((index) => Math.floor(index / columns)),
    column: places.map((index) => index % columns),
    value: Float64Array.from(places, (index) => at(values, index)),
  };
}

function scoresOfPeriods({ slots, oneOf, periods, control }: Cells, byPeriod: Float64Array): Float64Array {
  const h = new Float64Array(slots.length * oneOf);
  for (let index = 0; index < h.length; index += 1) {
    const [row, slot] = [Math.floor(index / oneOf), index % oneOf];
    for (let period = 0; period < periods; period += 1) {
      if (control[slot * periods + period] === 0) add(h, index, at(byPeriod, row * periods + period));
    }
  }
  return h;
}

/**
 * Iterative proportional fitting (Deming and Stephan, 1940): finds factors of rows and columns whose products have the same row and
 * column sums as the known cells. A row or column without known cells has the factor 0.
 */
export function fitRowsAndColumns(
  { row, column, value }: KnownCells,
  rows: number,
  columns: number,
): { row: Float64Array; column: Float64Array } {
  const rowSums = sumsBy(row, rows, (cell) => at(value, cell));
  const columnSums = sumsBy(column, columns, (cell) => at(value, cell));
  let rowFactors = rowSums;
  let columnFactors = columnSums;
  for (let round = 0, change = 1; round < MAX_ROUNDS && change >= MIN_CHANGE; round += 1) {
    const before = rowFactors;
    columnFactors = ratios(
      columnSums,
      sumsBy(column, columns, (cell) => at(before, row[cell])),
    );
    const fitted = columnFactors;
    rowFactors = ratios(
      rowSums,
      sumsBy(row, rows, (cell) => at(fitted, column[cell])),
    );
    change = rowFactors.reduce((max, next, r) => Math.max(max, Math.abs(next - at(before, r)) / (next || 1)), 0);
  }
  return { row: rowFactors, column: columnFactors };
}

function sumsBy(group: Uint32Array, groups: number, ofCell: (cell: number) => number): Float64Array {
  const sums = new Float64Array(groups);
  for (let cell = 0; cell < group.length; cell += 1) add(sums, at(group, cell), ofCell(cell));
  return sums;
}

function ratios(sums: Float64Array, weights: Float64Array): Float64Array {
  return sums.map((sum, index) => (weights[index] ? sum / at(weights, index) : 0));
}

function add(list: Float64Array, index: number, value: number): void {
  list[index] = at(list, index) + value;
}

/** An element of an array; the caller knows that it exists. */
function at(list: { [index: number]: number | undefined }, index = 0): number {
  return list[index] ?? 0;
}
