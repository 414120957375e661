import { type Desired, isRaise, type Size, wantedFields } from '../../compute/compute.ts';
import { resolveDisruption } from '../../policy/disruption.ts';
import { sameFields } from '../../records/failures.ts';
import { isoInstant, MINUTE_MS } from '../../time/units.ts';
import type { Change } from '../change.ts';
import type { Gate } from './gate.ts';

/** A lowering that lasts no longer than this, or than the cooldown, saves less than its two restarts cost; in milliseconds. */
const SOON_MS = 2 * MINUTE_MS;

/**
 * Holds a lowering that would restart an awake compute where a boundary would soon restart it again to undo that: a lowering that is caught
 * up late, such as after an outage, may come seconds before the next raise. What a person or a hard limit demands never waits.
 */
export const endsSoon: Gate = ({ change, nowMs, disruption, nextBoundaryAfter, enforcedAt }) => {
  const { group, disconnects, raises, hard, askedAtMs } = change;
  if (group === 'restart' || !disconnects || raises || hard || askedAtMs !== undefined) return undefined;
  const { cooldownMs } = resolveDisruption(change.disruption, disruption);
  const soonMs = nowMs + Math.min(cooldownMs, SOON_MS);
  // Most lowerings last for hours: for these, nothing is searched.
  const untilMs = isUndoneBy(change, enforcedAt(soonMs)) ? nextBoundaryAfter(nowMs, group) : undefined;
  if (untilMs === undefined || untilMs > soonMs) return undefined;
  const message = `it would be undone at ${isoInstant(untilMs)}: waiting for that, so that the compute is not restarted twice`;
  return { code: 'ends_soon', message, untilMs };
};

function isUndoneBy({ group, fields }: Change, later: Desired): boolean {
  const then = group === 'restart' ? undefined : wantedFields(group, later);
  if (then === undefined) return false;
  return group === 'size' ? isRaise(fields as Size, then as Size) : !sameFields(fields, then);
}
