/**
 * The interval of an effect by inversion of a randomisation test: every effect that the test does not reject. The test compares the
 * score of the real draw with those of other draws, so it is exact for no effect and for an effect that all units share, whatever the
 * noise. Sources: Imbens and Rubin, *Causal Inference* (2015), chapter 5; docs/savings.md.
 */

import { seededRandom } from '../random.ts';
import type { Cells } from './cells.ts';
import { scoring } from './score.ts';

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
  /** How much too high, or low, the score of an effect is: 0 at the best estimate, falling with b. In standard deviations. */
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

/** What an effect on the logarithm of usage saves, as a share of what would have been used. */
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
