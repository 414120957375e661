/**
 * How well an assumed effect explains what was measured. If a treated unit-day uses exp(b) times what it would have used as control,
 * then y·exp(−b·D) is what every cell would have used, whichever unit was drawn; what then still goes with the draw speaks against b.
 */
import type { Cells } from './cells.ts';

/** Rounds of fitting; complete tables take one, and the test is exact however many there are. */
const MOST_ROUNDS = 60;
const CLOSE_ENOUGH = 1e-9;

/** The known cells of a table, one after the other. */
export interface KnownCells {
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

/** What is known of a table by row, then column, where NaN is not known. */
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
