import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../../src/domain/random.ts';
import type { TrialDesign } from '../../../src/domain/trial/assignment.ts';
import { armTotals, type Cells, cellsOf, effectiveUnits } from '../../../src/domain/trial/cells.ts';
import {
  effectTest,
  fitRowsAndColumns,
  knownCells,
  savedShare,
  scoreFunction,
} from '../../../src/domain/trial/interval.ts';
import { simulateTrial } from './simulated-trial.ts';

/** Simulated trials for each property of the interval; EBB_SAVINGS_RUNS=2000 for a long run, EBB_SEED for another draw. */
const RUNS = Number(process.env.EBB_SAVINGS_RUNS ?? 150);
const SEED = Number(process.env.EBB_SEED ?? 1);

/** Two periods of three days, of which the first does not count, for two places. */
const HALVES: TrialDesign = { seed: '', oneOf: 2, rotateDays: 3, fromDay: 0, periods: 2, zone: 'UTC' };
const days = (...values: (number | null)[]) => new Map(values.map((value, day) => [day, value]));

describe('the cells of a trial', () => {
  const cells = cellsOf(HALVES, [
    { slot: 0, days: days(9, 1, 2, 9, 3, null) },
    { slot: 1, days: days(9, 4, 5, 9, 6, 7) },
  ]);

  it('leave out the first day of every period, and do not know what was not measured', () => {
    expect([...cells.values]).toEqual([1, 2, 3, Number.NaN, 4, 5, 6, 7]);
    expect([...cells.periodOf]).toEqual([0, 0, 1, 1]);
  });

  it('are summed by arm', () => {
    expect(armTotals(cells)).toEqual({ control: { unitDays: 4, sum: 16 }, treated: { unitDays: 3, sum: 12 } });
  });

  it('can be of a part of the trial, without days that are left out', () => {
    const units = [{ slot: 0, days: days(9, 1, 2, 9, 3, 4) }];
    expect([...cellsOf(HALVES, units, { fromDay: 2, untilDay: 5 }).values]).toEqual([2, 3]);
    expect([...cellsOf(HALVES, units, { leftOut: (day) => day < 3 }).values]).toEqual([3, 4]);
  });

  it('count as many units as would tell as much if all were of one size', () => {
    const alike = cellsOf(
      HALVES,
      [1, 2, 3].map(() => ({ slot: 0, days: days(0, 5, 5, 0, 5, 5) })),
    );
    expect(effectiveUnits(alike)).toBeCloseTo(3);
    // (10 + 30)² / (10² + 30²)
    const two = [10, 30].map((value) => ({ slot: 0, days: days(0, value) }));
    expect(effectiveUnits(cellsOf(HALVES, two))).toBeCloseTo(1.6);
  });
});

describe('fitting rows and columns', () => {
  it('is exact where the table is a product, also with cells that are not known', () => {
    const [a, g] = [
      [1, 2, 5],
      [3, 0.5, 7, 1],
    ];
    const y = Float64Array.from(a.flatMap((row) => g.map((column) => row * column)));
    y[5] = Number.NaN;
    const { row, column } = fitRowsAndColumns(knownCells(y, 4), 3, 4);
    for (const [r, one] of a.entries()) {
      for (const [c, other] of g.entries()) expect((row[r] ?? 0) * (column[c] ?? 0)).toBeCloseTo(one * other);
    }
  });

  it('leaves no residual in the sum of any row or column', () => {
    const cell = fc.oneof(
      { weight: 9, arbitrary: fc.double({ min: 0, max: 1e6, noNaN: true }) },
      fc.constant(Number.NaN),
    );
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 5 }), fc.array(cell, { minLength: 5, maxLength: 40 }), (columns, list) => {
        const rows = Math.floor(list.length / columns);
        const y = Float64Array.from(list.slice(0, rows * columns));
        const fit = fitRowsAndColumns(knownCells(y, columns), rows, columns);
        const largest = Math.max(1, ...[...y].filter((value) => !Number.isNaN(value)));
        for (let r = 0; r < rows; r += 1) {
          let residual = 0;
          for (let c = 0; c < columns; c += 1) {
            residual +=
              (y[r * columns + c] || 0) -
              (Number.isNaN(y[r * columns + c]) ? 0 : (fit.row[r] ?? 0) * (fit.column[c] ?? 0));
          }
          expect(Math.abs(residual)).toBeLessThan(1e-6 * largest * columns);
        }
      }),
    );
  });
});

describe('the scores', () => {
  it('are what hand and pencil give', () => {
    // Rows 10 20 | 30 40 (all control values): sums 30, 70; columns 40, 60; fit 12 18 | 28 42; residuals −2 2 | 2 −2.
    const cells: Cells = {
      oneOf: 2,
      slots: Uint8Array.of(0, 1),
      periodOf: Uint16Array.of(0, 1),
      control: Uint8Array.of(1, 0, 0, 1),
      periods: 2,
      values: Float64Array.of(10, 20, 30, 40),
    };
    // Place 0 is treated in the second period, place 1 in the first.
    const rounded = (h: Float64Array) => [...h].map((score) => Math.round(score * 1e6) / 1e6);
    expect(rounded(scoreFunction(cells)(0))).toEqual([2, -2, -2, 2]);
    const test = effectTest(cells);
    // Own scores 2 and 2; mean 0; variance 4 and 4.
    expect(test.statistic(0)).toBeCloseTo(4 / Math.sqrt(8));
    // Of the four draws one scores as high.
    expect(test.pValues(0).high).toBeCloseTo(0.25, 1);
    expect(test.pValues(0).low).toBeCloseTo(1, 1);
    // Treated cells are 20 and 30, the others 10 and 40: twice the usage in one unit, three quarters in the other.
    // 20·30 against 10·40: the effect is half of the logarithm of the odds ratio, ln(600 / 400) / 2.
    expect(rounded(scoreFunction(cells)(Math.log(1.5) / 2)).every((score) => Math.abs(score) < 1e-6)).toBe(true);
  });
});

describe('the interval', () => {
  const run = (effect: number, units: number, index: number) =>
    simulateTrial({ units, effect, tails: index % 2 === 0 ? 'normal' : 't4', effects: 'common' }, SEED * 7919 + index);

  it.each([0, 0.3])('covers a common effect of %d as often as it says', (effect) => {
    let missed = 0;
    for (let index = 0; index < RUNS; index += 1) {
      const { cells } = run(effect, 12, index);
      const { low, high } = effectTest(cells, { seed: index, draws: 500 }).pValues(Math.log(1 - effect));
      if (low <= 0.025 || high <= 0.025) missed += 1;
    }
    // Binomial with 5 %: four standard deviations above what is expected.
    expect(missed).toBeLessThan(0.05 * RUNS + 4 * Math.sqrt(0.05 * 0.95 * RUNS));
    expect(missed).toBeGreaterThan(0.05 * RUNS - 4 * Math.sqrt(0.05 * 0.95 * RUNS));
  });

  it('contains exactly the effects that the test does not reject', () => {
    for (let index = 0; index < 10; index += 1) {
      const test = effectTest(run(0.2, 30, index).cells, { draws: 500 });
      const interval = savedShare(test);
      if (!interval) throw new Error('not bounded');
      const isRejected = (saving: number) => Object.values(test.pValues(Math.log(1 - saving))).some((p) => p <= 0.025);
      expect(isRejected(interval.low + 0.001)).toBe(false);
      expect(isRejected(interval.low - 0.003)).toBe(true);
      expect(isRejected(interval.high - 0.001)).toBe(false);
      expect(isRejected(interval.high + 0.003)).toBe(true);
      expect(interval.mid).toBeGreaterThan(interval.low);
      expect(interval.mid).toBeLessThan(interval.high);
    }
  });

  it('is the same for the same data, and moves with the usage of the treated', () => {
    const { cells } = run(0.2, 20, 3);
    const interval = savedShare(effectTest(cells));
    expect(savedShare(effectTest(cells))).toEqual(interval);
    const columns = cells.periodOf.length;
    const halved = cells.values.map((value, index) => {
      const slot = cells.slots[Math.floor(index / columns)] ?? 0;
      const period = cells.periodOf[index % columns] ?? 0;
      return cells.control[slot * cells.periods + period] === 1 ? value : value / 2;
    });
    const other = savedShare(effectTest({ ...cells, values: halved }));
    for (const end of ['low', 'mid', 'high'] as const) {
      expect(1 - (other?.[end] ?? 0)).toBeCloseTo((1 - (interval?.[end] ?? 0)) / 2, 3);
    }
  });

  it('does not depend on the unit in which usage is measured', () => {
    const { cells } = run(0.1, 20, 4);
    const scaled = savedShare(effectTest({ ...cells, values: cells.values.map((value) => value / 3600) }));
    expect(scaled?.low).toBeCloseTo(savedShare(effectTest(cells))?.low ?? Number.NaN, 3);
  });

  it('is narrower with more units', () => {
    const half = (units: number) => {
      const interval = savedShare(effectTest(run(0, units, 6).cells));
      return ((interval?.high ?? 1) - (interval?.low ?? 0)) / 2;
    };
    expect(half(120)).toBeLessThan(half(15));
  });

  const nothing = (value: (treated: boolean) => number, units = 40) => {
    const random = seededRandom(5);
    const rows = Array.from({ length: units }, () => Math.floor(random() * 2)).map((slot) => ({
      slot,
      days: new Map(Array.from({ length: 6 }, (_, day) => [day, value(day < 3 !== (slot === 0))])),
    }));
    return savedShare(effectTest(cellsOf(HALVES, rows)));
  };

  it.each([
    ['nothing was used', nothing(() => 0)],
    ['the treated used nothing', nothing((treated) => (treated ? 0 : 7))],
    ['there is one unit', nothing(() => 7, 1)],
    ['there is no unit', nothing(() => 7, 0)],
  ])('is not measurable where %s', (_case, interval) => {
    expect(interval).toBeNull();
  });

  it('is a point where the effect is all that there is', () => {
    const random = seededRandom(2);
    const interval = nothing((treated) => (treated ? 6 : 10) * (1 + 1e-9 * random()));
    expect(interval?.low).toBeCloseTo(0.4, 3);
    expect(interval?.high).toBeCloseTo(0.4, 3);
  });
});
