/** The power of a trial, from the earlier usage of its units. */

import { seededRandom } from '../random.ts';
import type { TrialDesign } from './assignment.ts';
import { cellsOf, effectiveUnits } from './cells.ts';
import { effectTest, savedShare } from './interval.ts';

/** Draws of the past that are tried, and places drawn again for each. */
const TRIED = 20;
const DRAWS = 500;
/** An effect that is found in four of five trials is this much larger than half of the interval: (1.96 + 0.84) / 1.96. */
const FOUND_IN_FOUR_OF_FIVE = 1.43;

export interface Power {
  /** Days of the past that it rests on. */
  days: number;
  effectiveUnits: number;
  /** Half of the interval that is to be expected if nothing is saved, as a share. */
  halfWidth: number;
  /** The smallest saving that is found in four of five trials. */
  detectable: number;
}

/**
 * The interval that the trial would have had in the past, in which nothing was withdrawn: the median of draws that might have been. Where
 * the past is shorter than the trial it is scaled by the square root of the periods. Undefined with less than two periods, or where no
 * interval would be bounded.
 */
export function expectedPower(
  design: TrialDesign,
  past: readonly ReadonlyMap<number, number | null>[],
  lastDay: number,
): Power | undefined {
  const firstDay = Math.min(...past.flatMap((days) => [...days.keys()]));
  const periods = Math.min(design.periods, Math.floor((lastDay + 1 - firstDay) / design.rotateDays));
  if (!(periods >= 2)) return undefined;
  const asIf: TrialDesign = { ...design, periods, fromDay: lastDay + 1 - periods * design.rotateDays };
  const random = seededRandom(1);
  const halves: number[] = [];
  let effective = 0;
  for (let tried = 0; tried < TRIED; tried += 1) {
    const units = past.map((days) => ({ slot: Math.floor(random() * design.oneOf), days }));
    const cells = cellsOf(asIf, units);
    effective = effectiveUnits(cells);
    const interval = savedShare(effectTest(cells, { draws: DRAWS, seed: tried }));
    // On the scale of logarithms, on which intervals are about symmetric.
    halves.push(interval ? Math.log((1 - interval.low) / (1 - interval.high)) / 2 : Number.POSITIVE_INFINITY);
  }
  const median = halves.toSorted((a, b) => a - b)[Math.floor(TRIED / 2)] ?? Number.POSITIVE_INFINITY;
  if (!Number.isFinite(median)) return undefined;
  const half = median * Math.sqrt(periods / design.periods);
  return {
    days: periods * design.rotateDays,
    effectiveUnits: effective,
    halfWidth: Math.sinh(half),
    detectable: 1 - Math.exp(-FOUND_IN_FOUR_OF_FIVE * half),
  };
}
