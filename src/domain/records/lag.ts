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
import { HOUR_MS } from '../time/units.ts';
import type { ComputeRecord, LastChange } from './compute-record.ts';

/** A reading with the earlier values lags for this long after ebb's change, whatever its `updated_at` is. */
const LAG_MS = 60_000;

/**
 * A reading with an older `updated_at` lags for at most this long. If the platform has undone a change, `updated_at` may have gone back
 * too, and a person's change must not be ignored for ever.
 */
const LONGEST_LAG_MS = HOUR_MS;

/** Returns the record with the values before and after a change of these fields. */
export function withLastChange<R extends Pick<ComputeRecord, 'lastChanges'>>(
  record: R,
  fields: Partial<ComputeSettings>,
  { before = {}, ...answer }: Omit<LastChange, 'before' | 'to'> & { before?: Partial<ComputeSettings> | undefined },
): R {
  const lastChanges = { ...record.lastChanges };
  for (const group of FIELD_GROUPS) {
    const valuesBefore = fieldsOf(group, before);
    const to = fieldsOf(group, fields);
    if (valuesBefore && to) lastChanges[group] = { before: valuesBefore, to, ...answer };
  }
  return Object.keys(lastChanges).length > 0 ? { ...record, lastChanges } : record;
}

/** Returns the record with the fields that lag in the reading begun at `readAtMs`; the same record if they are unchanged. */
export function withLag(record: ComputeRecord, compute: Compute, readAtMs: number): ComputeRecord {
  const groups = FIELD_GROUPS.filter((group) => lags(record, group, compute, readAtMs));
  const { lagging, ...rest } = record;
  if (groups.length === 0) return lagging ? rest : record;
  const dates = [lagging?.updatedAtMs, compute.updatedAtMs].filter((ms) => ms !== undefined);
  const updatedAtMs = dates.length > 0 ? Math.max(...dates) : undefined;
  if (String(groups) === String(laggingGroups(record)) && updatedAtMs === lagging?.updatedAtMs) return record;
  const flags = Object.fromEntries(groups.map((group) => [group, true as const]));
  return { ...rest, lagging: { ...flags, ...(updatedAtMs !== undefined && { updatedAtMs }) } };
}

/** The groups of fields that lag in the last reading. */
export function laggingGroups({ lagging }: Pick<ComputeRecord, 'lagging'>): FieldGroup[] {
  return FIELD_GROUPS.filter((group) => lagging?.[group]);
}

/**
 * Returns the compute with its last known values in the fields in which the reading begun at `readAtMs` lags: values that a person has set, or
 * that ebb has applied.
 */
export function withoutLag(compute: Compute, record: ComputeRecord, readAtMs: number): Compute {
  const groups = FIELD_GROUPS.filter((group) => lags(record, group, compute, readAtMs));
  if (groups.length === 0) return compute;
  const lastValues = groups.map((group) => record.manual?.[group]?.fields ?? fieldsOf(group, record.lastApplied));
  return Object.assign({}, compute, ...lastValues);
}

/** Compares dates of changes by the control API's clock, on which they only rise; ebb's clock only measures the time since the answer. */
function lags(record: ComputeRecord, group: FieldGroup, compute: Compute, readAtMs: number): boolean {
  const applied = fieldsOf(group, record.lastApplied);
  const change = record.lastChanges?.[group];
  const mark = record.manual?.[group];
  // After a failed change the earlier values are correct, unless a later change was answered.
  const failure = record.failures?.[group];
  const isFailed = failure !== undefined && failure.lastAtMs >= (change?.answeredAtMs ?? 0);
  if (!applied || isFailed) return false;
  const isShown = hasSettings(compute, mark?.fields ?? applied);
  const newestMs = isShown ? newestLagMs(record, group) : Math.max(change?.updatedAtMs ?? 0, mark?.updatedAtMs ?? 0);
  if (compute.updatedAtMs !== undefined && compute.updatedAtMs < newestMs)
    return readAtMs - (mark?.seenAtMs ?? change?.answeredAtMs ?? Number.NEGATIVE_INFINITY) < LONGEST_LAG_MS;
  if (isShown || change === undefined) return false;
  return hasSettings(compute, change.before) && readAtMs - change.answeredAtMs < LAG_MS;
}

/**
 * The `updated_at` of the newest reading that counted as lagging. That reading was in fact current if a person had changed the value back. So a
 * reading with an older `updated_at` proves nothing, even if it shows ebb's own values.
 */
function newestLagMs({ lagging }: ComputeRecord, group: FieldGroup): number {
  return lagging?.[group] ? (lagging.updatedAtMs ?? 0) : 0;
}

/**
 * Returns the compute with the changes that ebb has applied after its reading began at `readAtMs`, milliseconds since the epoch. A field that a
 * person has changed stays as it was read.
 */
export function withApplied(compute: Compute, record: ComputeRecord | undefined, readAtMs: number): Compute {
  if (!record || record.intent || (record.lastSentAtMs ?? 0) <= readAtMs) return compute;
  const applied = FIELD_GROUPS.filter((group) => record.manual?.[group] === undefined).map((group) =>
    fieldsOf(group, record.lastApplied),
  );
  return Object.assign({}, compute, ...applied);
}
