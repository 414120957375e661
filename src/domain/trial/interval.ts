/**
 * The interval of an effect by inversion of a randomisation test: every effect that the test does not reject. The test compares the
 * score of the real draw with those of other draws, so it is exact for no effect and for an effect that all units share, whatever the
 * noise. Sources: Imbens and Rubin, *Causal Inference* (2015), chapter 5; docs/savings.md.
 */

import { seededRandom } from '../random.ts';
import type { Cells } from './cells.ts';

/** Of other draws that might have been. */
const DRAWS = 2000;
/** Effects beyond a hundredth and a hundredfold of the usage are not measurable. */
const MOST = Math.log(100);
/** Ends of an interval are found to this. */
const PRECISION = 1e-4;
const FIRST_STEP = 0.05;

/** An effect b as the share that is saved, 1 − exp(b). `low` and `high` are the ends of the interval. */
export interface Interval {
  low: number;
  mid: number;
  high: number;
}

/** A test of effects against the draw of a trial. */
export interface EffectTest {
  /** The deviation of the score of an effect: 0 at the best estimate, falling with b. In standard deviations. */
  statistic(b: number): number;
  /** One-sided p-values: how likely a draw has a score as low, or as high, as that of the real one. */
  pValues(b: number): { low: number; high: number };
}

/** Draws again and again with the same seed, so the same data give the same interval. */
export function effectTest(cells: Cells, { seed = 1, draws = DRAWS } = {}): EffectTest {
  const { oneOf, slots } = cells;
  const random = seededRandom(seed);
  const scoresOf = scoring(cells);
  const drawn = Uint8Array.from({ length: draws * slots.length }, () => Math.floor(random() * oneOf));
  const sumAt = (h: Float64Array, places: Uint8Array, offset: number) => {
    let sum = 0;
    for (let row = 0; row < slots.length; row += 1) sum += h[row * oneOf + (places[offset + row] ?? 0)] ?? 0;
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
      const own = sumAt(h, slots, 0);
      // Sums of the same numbers may differ in the last digits.
      const slack = 1e-9 * Math.sqrt(momentsOf(h, oneOf).variance);
      let [asLow, asHigh] = [1, 1];
      for (let draw = 0; draw < draws; draw += 1) {
        const sum = sumAt(h, drawn, draw * slots.length);
        if (sum <= own + slack) asLow += 1;
        if (sum >= own - slack) asHigh += 1;
      }
      return { low: asLow / (draws + 1), high: asHigh / (draws + 1) };
    },
  };
}

/** Of the sum of the scores, if every unit is drawn to each place with the same probability. */
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
 * The share that is saved, and the interval that covers it with the probability `level`; null if that is not bounded on both sides:
 * too few units, or nothing used.
 */
export function savedShare(test: EffectTest, level = 0.95): Interval | null {
  const mid = estimateOf(test);
  if (mid === undefined) return null;
  const tail = (1 - level) / 2;
  const above = lastNotRejected(mid, 1, (b) => test.pValues(b).low <= tail);
  const below = lastNotRejected(mid, -1, (b) => test.pValues(b).high <= tail);
  if (above === undefined || below === undefined) return null;
  return { low: shareOf(above), mid: shareOf(mid), high: shareOf(below) };
}

/** The saving of an effect on the logarithm of usage, as a share of the usage without it. */
function shareOf(b: number): number {
  return 1 - Math.exp(b);
}

/** The effect that leaves the score where it is expected. */
function estimateOf(test: EffectTest): number | undefined {
  if (test.statistic(-MOST) <= 0 || test.statistic(MOST) >= 0) return undefined;
  let [low, high] = [-MOST, MOST];
  while (high - low > PRECISION / 10) {
    const middle = (low + high) / 2;
    if (test.statistic(middle) > 0) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}

/** Goes outwards with steps that double, then bisects; undefined if nothing is rejected. */
function lastNotRejected(fromB: number, sign: 1 | -1, isRejected: (b: number) => boolean): number | undefined {
  let inside = fromB;
  let step = sign * FIRST_STEP;
  while (!isRejected(inside + step)) {
    inside += step;
    step *= 2;
    if (Math.abs(inside + step) > MOST) return undefined;
  }
  let outside = inside + step;
  while (Math.abs(outside - inside) > PRECISION) {
    const middle = (inside + outside) / 2;
    if (isRejected(middle)) outside = middle;
    else inside = middle;
  }
  return inside;
}

/*
 * How well an assumed effect explains what was measured. If a treated unit-day uses exp(b) times what it would have used as control,
 * then y·exp(−b·D) is what every cell would have used, whichever unit was drawn; what then still goes with the draw speaks against b.
 */

/** Rounds of fitting; complete tables take one, and the test is exact however many there are. */
const MOST_ROUNDS = 60;
const CLOSE_ENOUGH = 1e-9;

/** The known cells of a table, one after the other. */
interface KnownCells {
  row: Uint32Array;
  column: Uint32Array;
  value: Float64Array;
}

/**
 * The scores of an effect b: for each unit and each place of the rotation, `h[row * oneOf + slot]`, the sum of the residuals of the
 * days on which that place is treated.
 */
export function scoring(cells: Cells): (b: number) => Float64Array {
  const { slots, periodOf, periods } = cells;
  const known = knownCells(cells.values, periodOf.length);
  const { row, column, value } = known;
  const period = Uint32Array.from(column, (at) => periodOf[at] ?? 0);
  const isControl = value.map(
    (_, cell) => cells.control[slotOf(cells, row[cell]) * periods + (period[cell] ?? 0)] ?? 0,
  );
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

/** The known cells of a table by row, then column, where NaN is unknown. */
export function knownCells(values: Float64Array, columns: number): KnownCells {
  const places = Uint32Array.from([...values.keys()].filter((index) => !Number.isNaN(values[index])));
  return {
    row: places.map((index) => Math.floor(index / columns)),
    column: places.map((index) => index % columns),
    value: Float64Array.from(places, (index) => at(values, index)),
  };
}

/** For each place the residuals of the periods in which it is treated. */
function scoresOfPeriods({ slots, oneOf, periods, control }: Cells, byPeriod: Float64Array): Float64Array {
  const h = new Float64Array(slots.length * oneOf);
  for (let place = 0; place < h.length; place += 1) {
    const [row, slot] = [Math.floor(place / oneOf), place % oneOf];
    for (let period = 0; period < periods; period += 1) {
      if (control[slot * periods + period] === 0) add(h, place, at(byPeriod, row * periods + period));
    }
  }
  return h;
}

/**
 * Iterative proportional fitting (Deming and Stephan, 1940): factors of rows and columns whose products have the sums of the known
 * cells of every row and column. A row or column without a known cell has the factor 0.
 */
export function fitRowsAndColumns(
  { row, column, value }: KnownCells,
  rows: number,
  columns: number,
): { row: Float64Array; column: Float64Array } {
  const rowSums = sumsBy(row, rows, (cell) => at(value, cell));
  const columnSums = sumsBy(column, columns, (cell) => at(value, cell));
  let ofRows = rowSums;
  let ofColumns = columnSums;
  for (let round = 0, moved = 1; round < MOST_ROUNDS && moved >= CLOSE_ENOUGH; round += 1) {
    const before = ofRows;
    ofColumns = ratios(
      columnSums,
      sumsBy(column, columns, (cell) => at(before, row[cell])),
    );
    const fitted = ofColumns;
    ofRows = ratios(
      rowSums,
      sumsBy(row, rows, (cell) => at(fitted, column[cell])),
    );
    moved = ofRows.reduce((most, next, r) => Math.max(most, Math.abs(next - at(before, r)) / (next || 1)), 0);
  }
  return { row: ofRows, column: ofColumns };
}

function sumsBy(group: Uint32Array, groups: number, ofCell: (cell: number) => number): Float64Array {
  const sums = new Float64Array(groups);
  for (let cell = 0; cell < group.length; cell += 1) add(sums, at(group, cell), ofCell(cell));
  return sums;
}

function ratios(sums: Float64Array, weights: Float64Array): Float64Array {
  return sums.map((sum, index) => (weights[index] ? sum / at(weights, index) : 0));
}

function slotOf({ slots }: Cells, row = 0): number {
  return slots[row] ?? 0;
}

function add(list: Float64Array, index: number, value: number): void {
  list[index] = at(list, index) + value;
}

/** An element that is there. */
function at(list: { [index: number]: number | undefined }, index = 0): number {
  return list[index] ?? 0;
}
