/**
 * The deadline of a value starts when it becomes wanted. Boundaries of policies can be computed. Other causes (a hold that ends, an
 * edited policy, fewer connections) are only visible by comparison with the stored wanted value.
 */

import { FIELD_GROUPS, type FieldGroup, wantedFields } from '../compute/compute.ts';
import { type BoundaryInput, lastBoundary } from '../decide/boundaries.ts';
import { type Decision, decide } from '../decide/decide.ts';
import type { ComputeRecord } from '../records/compute-record.ts';
import { sameFields } from '../records/failures.ts';

interface WantedInput extends BoundaryInput {
  record: ComputeRecord | undefined;
  decision: Decision;
}

/**
 * The instant since which the value is wanted, milliseconds since the epoch. −Infinity if that is longer ago than any deadline, now if it is
 * unknown.
 */
export function wantedSince(input: WantedInput, group: FieldGroup): number {
  const { record, decision } = input;
  const boundaryMs = lastBoundary(input, decision.instantMs, group);
  const stored = record?.wanted?.[group];
  if (!stored) return boundaryMs ?? decision.instantMs;
  if (sameFields(stored.fields, wantedFields(group, decision.enforced) ?? {}))
    return Math.max(stored.sinceMs, boundaryMs ?? Number.NEGATIVE_INFINITY);
  if (boundaryMs === undefined || !Number.isFinite(boundaryMs)) return decision.instantMs;
  const beforeBoundary = decide({ ...input, instantMs: boundaryMs - 1 });
  const wasWantedBefore = sameFields(stored.fields, wantedFields(group, beforeBoundary.enforced) ?? {});
  return wasWantedBefore ? boundaryMs : decision.instantMs;
}

/** When a decision first wanted the value, milliseconds since the epoch; now if no earlier decision is known to have wanted it. */
export function firstNotedMs(
  { record, decision }: Pick<WantedInput, 'record' | 'decision'>,
  group: FieldGroup,
): number {
  const stored = record?.wanted?.[group];
  const isSame = stored && sameFields(stored.fields, wantedFields(group, decision.enforced) ?? {});
  return isSame ? (stored.notedAtMs ?? stored.sinceMs) : decision.instantMs;
}

/** Returns the record with the wanted values and their start; the same record if they are unchanged. */
export function withWanted(input: WantedInput & { record: ComputeRecord }): ComputeRecord {
  const { record, decision } = input;
  const changedEntries = FIELD_GROUPS.flatMap((group) => {
    const fields = wantedFields(group, decision.enforced) ?? {};
    const before = record.wanted?.[group];
    if (before && sameFields(before.fields, fields)) return [];
    const sinceMs = Math.max(0, wantedSince(input, group));
    const noted = sinceMs === decision.instantMs ? {} : { notedAtMs: decision.instantMs };
    return [[group, { fields, sinceMs, ...noted }] as const];
  });
  return changedEntries.length === 0
    ? record
    : { ...record, wanted: { ...record.wanted, ...Object.fromEntries(changedEntries) } };
}
