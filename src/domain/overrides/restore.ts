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

/** The name that stands for a restore request in place of a policy's. */
export const RESTORE = 'restore';

/** A slow policy may delay a restore until its window closes, but nobody expects a change a week later. */
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

/** The part of a decision about a request: see `Decision` in decide/decide.ts. */
interface Decided {
  instantMs: number;
  enforced: Desired;
  setBy: Partial<Record<FieldGroup, string>>;
  holds: readonly unknown[];
}

/**
 * A record without the requested fields that policies set now: the request must not wait until they are changed or disabled, when nobody
 * remembers it any more. A request also ends after its day, or if the platform does not allow its timeout at the size of the compute; a
 * hold may restore that size, so then it waits. The same record if nothing is dropped.
 */
export function withoutDecided(
  record: ComputeRecord,
  compute: Compute,
  { instantMs, enforced, setBy, holds }: Decided,
): ComputeRecord {
  if (!restoreAt(record, instantMs)) return withoutRestore(record);
  const isDone = (group: FieldGroup) =>
    holds.length === 0 && !record.lagging?.[group] && hasSettings(compute, wantedFields(group, enforced) ?? {});
  return keepFields(record, (group) => setBy[group] === undefined && !isDone(group));
}

/** True if the record names the fields that policies set, and has no request that they contradict. */
export function isNoted(record: ComputeRecord, compute: Compute, decision: Decided): boolean {
  const isKnown = (group: FieldGroup) =>
    (record.setBy?.[group] === undefined) === (decision.setBy[group] === undefined);
  return FIELD_GROUPS.every(isKnown) && withoutDecided(record, compute, decision) === record;
}

/** The restore request of a record while it is valid. */
export function restoreAt(record: ComputeRecord | undefined, nowMs: number): Restore | undefined {
  return record?.restore && nowMs < record.restore.expiresAtMs ? record.restore : undefined;
}

/** A record whose request no longer has the fields that are back. A reading that lags may show the baseline as it was before ebb's change. */
export function forgetRestored(record: ComputeRecord, compute: Compute): ComputeRecord {
  const { baseline, lagging } = record;
  return keepFields(
    record,
    (group) => lagging?.[group] === true || !hasSettings(compute, fieldsOf(group, baseline) ?? {}),
  );
}

/** The record without the request; the same if there is none. */
export function withoutRestore(record: ComputeRecord): ComputeRecord {
  if (!record.restore) return record;
  const { restore: _dropped, ...rest } = record;
  return rest;
}

/** The fields of a request that waits. */
export function restoreFields({ restore }: ComputeRecord): readonly FieldGroup[] {
  return restore ? (restore.fields ?? FIELD_GROUPS) : [];
}

function keepFields(record: ComputeRecord, isKept: (group: FieldGroup) => boolean): ComputeRecord {
  const fields = restoreFields(record);
  const kept = fields.filter(isKept);
  if (!record.restore || kept.length === fields.length) return record;
  return kept.length === 0 ? withoutRestore(record) : { ...record, restore: { ...record.restore, fields: kept } };
}
