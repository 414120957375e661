import {
  type Compute,
  type Desired,
  FIELD_GROUPS,
  type FieldGroup,
  fieldsOf,
  hasSettings,
  wantedFields,
} from '../compute/compute.ts';
import type { ComputeRecord, Restore } from '../records/compute-record.ts';
import { DAY_MS } from '../time/units.ts';

/** Stands in place of a policy's name. */
export const RESTORE = 'restore';

/** The validity of a restore. Windows may delay it for hours, but nobody expects a change a week later. */
export const RESTORE_LASTS_MS = DAY_MS;

/** Returns the record with a request to restore the baseline. */
export function withRestore(
  record: ComputeRecord,
  request: { owner: string; nowMs: number; now: boolean; fields?: readonly FieldGroup[] },
): ComputeRecord {
  const { owner, nowMs, now, fields = FIELD_GROUPS } = request;
  const restore: Restore = {
    owner,
    askedAtMs: nowMs,
    expiresAtMs: nowMs + RESTORE_LASTS_MS,
    ...(now && { now }),
    ...(fields.length < FIELD_GROUPS.length && { fields }),
  };
  return { ...record, restore };
}

/** The parts of `Decision` (decide/decide.ts) that matter for a restore. */
interface RestoreDecision {
  instantMs: number;
  enforced: Desired;
  setBy: Partial<Record<FieldGroup, string>>;
  holds: readonly unknown[];
}

/**
 * Removes requested fields that policies set now: otherwise the request would apply when those policies change, long after it was made. Also
 * removes an expired request, and fields that already have the decided values; the latter stay while a hold or a lagging reading may be the
 * cause. Returns the same record if nothing is removed.
 */
export function withoutDecided(
  record: ComputeRecord,
  compute: Compute,
  { instantMs, enforced, setBy, holds }: RestoreDecision,
): ComputeRecord {
  if (!restoreAt(record, instantMs)) return withoutRestore(record);
  const isDone = (group: FieldGroup) =>
    holds.length === 0 && !record.lagging?.[group] && hasSettings(compute, wantedFields(group, enforced) ?? {});
  return keepRestoreFields(record, (group) => setBy[group] === undefined && !isDone(group));
}

/** True if the record tells which groups policies set, and has no restore that {@link withoutDecided} would remove. */
export function isRestoreUpToDate(record: ComputeRecord, compute: Compute, decision: RestoreDecision): boolean {
  const isStored = (group: FieldGroup) =>
    (record.setBy?.[group] === undefined) === (decision.setBy[group] === undefined);
  return FIELD_GROUPS.every(isStored) && withoutDecided(record, compute, decision) === record;
}

/** The restore request of a record, if it is still valid. */
export function restoreAt(record: ComputeRecord | undefined, nowMs: number): Restore | undefined {
  return record?.restore && nowMs < record.restore.expiresAtMs ? record.restore : undefined;
}

/** Removes restored fields from the request. Lagging fields stay: they may show the baseline from before ebb's change. */
export function withoutRestoredFields(record: ComputeRecord, compute: Compute): ComputeRecord {
  const { baseline, lagging } = record;
  return keepRestoreFields(
    record,
    (group) => lagging?.[group] === true || !hasSettings(compute, fieldsOf(group, baseline) ?? {}),
  );
}

/** Removes the request; the same record if there is none. */
export function withoutRestore(record: ComputeRecord): ComputeRecord {
  if (!record.restore) return record;
  const { restore: _dropped, ...rest } = record;
  return rest;
}

/** The fields that still have to be restored. */
export function restoreFields({ restore }: ComputeRecord): readonly FieldGroup[] {
  return restore ? (restore.fields ?? FIELD_GROUPS) : [];
}

function keepRestoreFields(record: ComputeRecord, isKept: (group: FieldGroup) => boolean): ComputeRecord {
  const fields = restoreFields(record);
  const kept = fields.filter(isKept);
  if (!record.restore || kept.length === fields.length) return record;
  return kept.length === 0 ? withoutRestore(record) : { ...record, restore: { ...record.restore, fields: kept } };
}
