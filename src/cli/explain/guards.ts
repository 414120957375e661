import { printable } from '../../common/safe-text.ts';
import { formatChange } from '../../domain/compute/compute-units.ts';
import type { EvaluatedCompute } from '../../domain/evaluate/evaluate.ts';
import { describeWatch } from '../../domain/guards/state.ts';
import { floorViews, type GuardFacts, guardViews } from '../../domain/notifications/guards-of-compute.ts';
import { describeFinding } from '../../domain/notifications/of-record.ts';
import { ageText } from '../../domain/time/age.ts';
import { isoInstant } from '../../domain/time/units.ts';

/** The guards, the finding and the floors of a compute as lines of text. */
export function guardStateLines(evaluated: EvaluatedCompute, facts: GuardFacts): string[] {
  const { compute, record } = evaluated;
  const verdicts = guardViews(evaluated, facts).flatMap(({ guard, verdict, watch }) => {
    const age = verdict.atMs === undefined ? '' : ` (${ageText(verdict.atMs, facts.atMs)})`;
    const watched = watch ? [`  watched   by ${guard.name} ${describeWatch(watch, guard.watchMs)}`] : [];
    return [`  ${guard.name}  ${verdict.state}: ${verdict.message}${age}`, ...watched];
  });
  const { guardFinding } = record;
  const found = guardFinding ? [`  found     ${describeFinding(compute, guardFinding, 'later')}`] : [];
  const floors = floorViews(evaluated, facts);
  const floorLines = floors.map((floor) => {
    const { guard, sinceMs, fields, lowered, policy, isInEffect, endMs } = floor;
    const end = endMs === undefined ? `until ${policy} changes` : `until ${isoInstant(endMs)}, or ${policy} changes`;
    const change = formatChange({ ...compute, ...lowered }, fields);
    const effect = isInEffect ? '' : '; it changes nothing now';
    return `  floor     ${change} since ${isoInstant(sinceMs)}, by guard ${guard}, which was bad after ${policy} had lowered it; ${end}${effect}`;
  });
  const release = floors.length > 0 ? [`  to lower it again now: ebb release ${compute.computeId} --guard`] : [];
  return [...verdicts, ...found, ...floorLines, ...release].map(printable);
}
