import { type Desired, isRaise, type Size, wantedFields } from '../../compute/compute.ts';
import { resolveDisruption } from '../../policy/disruption.ts';
import { sameFields } from '../../records/failures.ts';
import { isoInstant, MINUTE_MS } from '../../time/units.ts';
import type { Change } from '../change.ts';
import type { Gate } from './gate.ts';

/** A change that lasts no longer than this, or than a shorter cooldown, is worth less than its two restarts cost. */
const SOON_MS = 2 * MINUTE_MS;

/**
 * Holds a change that would restart an awake compute if a boundary would soon restart it again to undo the change. Such a change is
 * usually late, for example after an outage. A raise is still made while at least half of its time is left. Changes that are urgent, or
 * that a hold or a hard limit demands, never wait.
 */
export const endsSoon: Gate = ({ change, nowMs, disruption, nextBoundaryAfter, enforcedAt, wantedSince }) => {
  const { group, disconnects, raises, urgent, hard, askedAtMs } = change;
  if (group === 'restart' || !disconnects || urgent || hard || askedAtMs !== undefined) return undefined;
  const { cooldownMs } = resolveDisruption(change.disruption, disruption);
  const soonMs = nowMs + Math.min(cooldownMs, SOON_MS);
  // Most changes last for hours: for these, nothing is searched.
  const untilMs = isUndoneBy(change, enforcedAt(soonMs)) ? nextBoundaryAfter(nowMs, group) : undefined;
  if (untilMs === undefined || untilMs > soonMs) return undefined;
  const isInTime = nowMs - (change.windowStartMs ?? wantedSince(group)) <= untilMs - nowMs;
  if (raises && isInTime) return undefined;
  const message = `it would be undone at ${isoInstant(untilMs)}: waiting for that, so that the compute is not restarted twice`;
  return { code: 'ends_soon', message, untilMs };
};

function isUndoneBy({ group, fields, raises }: Change, later: Desired): boolean {
  const laterFields = group === 'restart' ? undefined : wantedFields(group, later);
  if (laterFields === undefined) return false;
  if (group !== 'size') return !sameFields(fields, laterFields);
  const [now, soon] = [fields as Size, laterFields as Size];
  return raises ? isRaise(soon, now) : isRaise(now, soon);
}
