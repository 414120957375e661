import { type Compute, FIELD_GROUPS, type FieldGroup, fieldsOf, hasSettings } from '../compute/compute.ts';
import type { ComputeRecord, Restore } from '../records/compute-record.ts';

/** What stands in the place of a policy's name where a restore speaks. */
export const RESTORE = 'restore';

/** A policy that takes its time may stand in the way until its window closes, but nobody expects a change a week later. */
export const RESTORE_LASTS_MS = 24 * 60 * 60_000;

/** A record in which the compute is wanted back at its baseline. */
export function withRestore(
  record: ComputeRecord,
  asked: { owner: string; nowMs: number; now: boolean; fields?: readonly FieldGroup[] },
): ComputeRecord {
  const { owner, nowMs, now, fields = FIELD_GROUPS } = asked;
  const times = { askedAtMs: nowMs, expiresAtMs: nowMs + RESTORE_LASTS_MS };
  const restore = { owner, ...times, ...(now && { now: true as const }) };
  return { ...record, restore: fields.length < FIELD_GROUPS.length ? { ...restore, fields } : restore };
}

/**
 * A record without the part of a request that policies decide now: it must not wait until they are changed or disabled, when nobody
 * remembers it any more. The same record if all of it can be done.
 */
export function withoutDecided(
  record: ComputeRecord,
  { restoring }: { restoring: readonly FieldGroup[] },
): ComputeRecord {
  const { restore, ...rest } = record;
  if (!restore) return record;
  const { fields = FIELD_GROUPS } = restore;
  const left = fields.filter((group) => restoring.includes(group));
  if (left.length === fields.length) return record;
  return left.length === 0 ? rest : { ...record, restore: { ...restore, fields: left } };
}

/** What a person wants back, while that still counts. */
export function restoreAt(record: ComputeRecord | undefined, nowMs: number): Restore | undefined {
  return record?.restore && nowMs < record.restore.expiresAtMs ? record.restore : undefined;
}

/** A record without the request, once the compute is back or the request has expired. */
export function forgetRestored(record: ComputeRecord, compute: Compute, nowMs: number): ComputeRecord {
  if (!record.restore) return record;
  const { fields = FIELD_GROUPS } = record.restore;
  const isBack = fields.every((group) => hasSettings(compute, fieldsOf(group, record.baseline) ?? {}));
  if (restoreAt(record, nowMs) && !isBack) return record;
  const { restore: _done, ...rest } = record;
  return rest;
}
