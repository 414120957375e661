/**
 * A reading of the control API lags if it shows a compute's settings from before a change by ebb or a person. Nothing is written
 * because of such a reading. Instants are milliseconds since the epoch.
 */

import {
  type Compute,
  type ComputeSettings,
  FIELD_GROUPS,
  type FieldGroup,
  fieldsOf,
  hasSettings,
} from '../compute/compute.ts';
import type { ComputeRecord, LastChange, ManualMark } from './compute-record.ts';

/** A reading with the earlier values lags for this long after ebb's change, whatever its `updated_at` is. */
const LAG_MS = 60_000;

/**
 * A reading with an older `updated_at` lags for at most this long. If the platform has undone a change, `updated_at` may have gone back
 * too, and a person's change must not be ignored for ever.
 */
const LONGEST_LAG_MS = 60 * 60_000;

/** Returns the record with the values before a change of these fields, and the time of the answer. */
export function withLastChange(
  record: ComputeRecord,
  fields: Partial<ComputeSettings>,
  { before = {}, ...answer }: Omit<LastChange, 'before'> & { before?: Partial<ComputeSettings> | undefined },
): ComputeRecord {
  const lastChanges = { ...record.lastChanges };
  for (const group of FIELD_GROUPS) {
    const valuesBefore = fieldsOf(group, before);
    if (valuesBefore && fieldsOf(group, fields)) lastChanges[group] = { before: valuesBefore, ...answer };
  }
  return Object.keys(lastChanges).length > 0 ? { ...record, lastChanges } : record;
}

/** Returns the record with the fields that lag in the reading begun at `readAtMs`; the same record if they are unchanged. */
export function withLag(record: ComputeRecord, compute: Compute, readAtMs: number): ComputeRecord {
  const groups = FIELD_GROUPS.filter((group) => lags(record, group, compute, readAtMs));
  const { lagging, ...rest } = record;
  if (groups.length === 0) return lagging ? rest : record;
  const updatedAtMs = latest(lagging?.updatedAtMs, compute.updatedAtMs);
  if (String(groups) === String(laggingGroups(record)) && updatedAtMs === lagging?.updatedAtMs) return record;
  const of = Object.fromEntries(groups.map((group) => [group, true as const]));
  return { ...rest, lagging: { ...of, ...(updatedAtMs !== undefined && { updatedAtMs }) } };
}

function latest(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? (one ?? other) : Math.max(one, other);
}

/** The groups of fields that lag in the last reading. */
export function laggingGroups({ lagging }: Pick<ComputeRecord, 'lagging'>): FieldGroup[] {
  return FIELD_GROUPS.filter((group) => lagging?.[group]);
}

/**
 * Tells whether a group lags. Times of changes are compared on the control API's clock, on which a newer change is never older than a
 * known one. ebb's clock only measures the time since the answer.
 */
function lags(record: ComputeRecord, group: FieldGroup, compute: Compute, readAtMs: number): boolean {
  const applied = fieldsOf(group, record.lastApplied);
  const { [group]: change } = record.lastChanges ?? {};
  const { [group]: mark } = record.manual ?? {};
  // After a failed change the earlier values are correct, unless a later change was answered.
  const failure = record.failures?.[group];
  const isFailed = failure !== undefined && failure.lastAtMs >= (change?.answeredAtMs ?? 0);
  if (!applied || isFailed) return false;
  const isShown = hasSettings(compute, mark?.fields ?? applied);
  if (isBefore(compute, isShown ? laggedUntil(record, group) : newestUpdateMs(change, mark)))
    return readAtMs - (mark?.seenAtMs ?? change?.answeredAtMs ?? Number.NEGATIVE_INFINITY) < LONGEST_LAG_MS;
  return (
    !isShown && change !== undefined && hasSettings(compute, change.before) && readAtMs - change.answeredAtMs < LAG_MS
  );
}

function isBefore({ updatedAtMs }: Compute, otherMs: number): boolean {
  return updatedAtMs !== undefined && updatedAtMs < otherMs;
}

function newestUpdateMs(change: LastChange | undefined, mark: ManualMark | undefined): number {
  return Math.max(change?.updatedAtMs ?? 0, mark?.updatedAtMs ?? 0);
}

/**
 * The date of the newest reading that was taken for lagging. It may have shown a person's change back, which is noticed later; so an older
 * one, even with ebb's own values, says nothing.
 */
function laggedUntil({ lagging }: ComputeRecord, group: FieldGroup): number {
  return lagging?.[group] ? (lagging.updatedAtMs ?? 0) : 0;
}
