/**
 * Since when something has been wanted: the start of deadlines. The policies know it for their own boundaries; other changes (a hold that
 * ends, an edited policy, fewer connections) are known only from the wish before.
 */

import { FIELD_GROUPS, type FieldGroup, wantedFields } from '../compute/compute.ts';
import { type BoundaryInput, lastBoundary } from '../decide/boundaries.ts';
import { type Decision, decide } from '../decide/decide.ts';
import type { ComputeRecord } from '../records/compute-record.ts';
import { sameFields } from '../records/failures.ts';

export interface WantedInput extends BoundaryInput {
  record: ComputeRecord | undefined;
  decision: Decision;
}

/** Milliseconds since the epoch; −Infinity if for longer than any deadline, now where neither policies nor the record can tell. */
export function wantedSince(input: WantedInput, group: FieldGroup): number {
  const { record, decision } = input;
  const boundaryMs = lastBoundary(input, decision.instantMs, group);
  const before = record?.wanted?.[group];
  if (!before) return boundaryMs ?? decision.instantMs;
  if (sameFields(before.fields, wantedFields(group, decision.enforced) ?? {}))
    return Math.max(before.sinceMs, boundaryMs ?? Number.NEGATIVE_INFINITY);
  if (boundaryMs === undefined || !Number.isFinite(boundaryMs)) return decision.instantMs;
  const until = decide({ ...input, instantMs: boundaryMs - 1 });
  const isOfBoundary = sameFields(before.fields, wantedFields(group, until.enforced) ?? {});
  return isOfBoundary ? boundaryMs : decision.instantMs;
}

/** A record with the present wish, and since when; the same record if it is unchanged. */
export function withWanted(input: WantedInput & { record: ComputeRecord }): ComputeRecord {
  const { record, decision } = input;
  const news = FIELD_GROUPS.flatMap((group) => {
    const fields = wantedFields(group, decision.enforced) ?? {};
    const before = record.wanted?.[group];
    if (before && sameFields(before.fields, fields)) return [];
    return [[group, { fields, sinceMs: Math.max(0, wantedSince(input, group)) }] as const];
  });
  return news.length === 0 ? record : { ...record, wanted: { ...record.wanted, ...Object.fromEntries(news) } };
}
