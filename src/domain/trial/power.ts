/** Estimates the power of a trial from the earlier usage of its units. */

import { seededRandom } from '../random.ts';
import { quantile } from '../sorted.ts';
import type { TrialDesign } from './assignment.ts';
import { cellsOf, effectiveUnits } from './cells.ts';
import { effectTest, savedShare } from './interval.ts';

/** The number of simulated past draws, and of other draws that each is tested against. */
const SIMULATED_DRAWS = 20;
const TEST_DRAWS = 500;
/** The ratio of an effect that is detected in four of five trials to half of the interval: (1.96 + 0.84) / 1.96. */
const DETECTABLE_FACTOR = 1.43;

interface Power {
  /** The number of past days that were used. */
  days: number;
  effectiveUnits: number;
  /** Half of the interval expected without any saving, as a share. */
  halfWidth: number;
  /** The smallest saving that is detected in four of five trials. */
  detectable: number;
}

/**
 * The interval that the trial would have had in the past, when nothing was withdrawn: the median over simulated draws. If the past is
 * shorter than the trial, the interval is scaled by the square root of the periods. `past` has each unit's usage by local day, up to `lastDay`.
 * Undefined with less than two periods, or without a bounded interval.
 */
export function expectedPower(
  design: TrialDesign,
  past: readonly ReadonlyMap<number, number | null>[],
  lastDay: number,
): Power | undefined {
  const firstDay = Math.min(...past.map((days) => Math.min(...days.keys())));
  const periods = Math.min(design.periods, Math.floor((lastDay + 1 - firstDay) / design.rotateDays));
  if (!(periods >= 2)) return undefined;
  const pastDesign: TrialDesign = { ...design, periods, fromDay: lastDay + 1 - periods * design.rotateDays };
  const random = seededRandom(1);
  const halfWidths: number[] = [];
  let effective = 0;
  for (let draw = 0; draw < SIMULATED_DRAWS; draw += 1) {
    const units = past.map((days) => ({ slot: Math.floor(random() * design.oneOf), days }));
    const cells = cellsOf(pastDesign, units);
    effective = effectiveUnits(cells);
    const interval = savedShare(effectTest(cells, { draws: TEST_DRAWS, seed: draw }));
    // Half widths on the logarithmic scale, on which intervals are nearly symmetric.
    halfWidths.push(interval ? Math.log((1 - interval.low) / (1 - interval.high)) / 2 : Number.POSITIVE_INFINITY);
  }
  const median = quantile(halfWidths, 0.5) ?? Number.POSITIVE_INFINITY;
  if (!Number.isFinite(median)) return undefined;
  const half = median * Math.sqrt(periods / design.periods);
  return {
    days: periods * design.rotateDays,
    effectiveUnits: effective,
    halfWidth: Math.sinh(half),
    detectable: 1 - Math.exp(-DETECTABLE_FACTOR * half),
  };
}
