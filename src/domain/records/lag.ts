/**
 * The control API may answer a reading with a compute's settings from before ebb's own change, or a person's. Such a reading lags: it is
 * not trusted, and nothing is written because of it. Instants are milliseconds since the epoch.
 */

import {
  type Compute,
  type ComputeSettings,
  FIELD_GROUPS,
  type FieldGroup,
  fieldsOf,
  hasSettings,
} from '../compute/compute.ts';
import type { ComputeRecord, LastChange } from './compute-record.ts';

/** For this long after ebb's change, a reading with the earlier values lags, whatever age it claims. */
const LAG_MS = 60_000;

/**
 * A reading older by its own claim lags for this long at most: `updated_at` may have gone back with the settings where the platform has
 * undone a change, and a person's change must not wait for ever.
 */
const MOST_LAG_MS = 60 * 60_000;

/** A record with the compute's values before a change of these fields, and the time of the answer. */
export function withLastChange(
  record: ComputeRecord,
  fields: Partial<ComputeSettings>,
  { before = {}, ...answer }: Omit<LastChange, 'before'> & { before?: Partial<ComputeSettings> | undefined },
): ComputeRecord {
  const lastChanges = { ...record.lastChanges };
  for (const group of FIELD_GROUPS) {
    const had = fieldsOf(group, before);
    if (had && fieldsOf(group, fields)) lastChanges[group] = { before: had, ...answer };
  }
  return Object.keys(lastChanges).length > 0 ? { ...record, lastChanges } : record;
}

/** A record that names the fields of which the reading that began at `readAtMs` lags. The same record if that is known. */
export function withLag(record: ComputeRecord, compute: Compute, readAtMs: number): ComputeRecord {
  const groups = FIELD_GROUPS.filter((group) => lags(record, group, compute, readAtMs));
  if (String(groups) === String(laggingGroups(record))) return record;
  const { lagging: _before, ...rest } = record;
  if (groups.length === 0) return rest;
  return { ...rest, lagging: Object.fromEntries(groups.map((group) => [group, true as const])) };
}

/** The groups of fields of which the last reading lags. */
export function laggingGroups({ lagging }: Pick<ComputeRecord, 'lagging'>): FieldGroup[] {
  return FIELD_GROUPS.filter((group) => lagging?.[group]);
}

/**
 * Ages are compared on the control API's own clock: a person's change after the last known one is never older than it. ebb's clock only
 * gives the time since the answer.
 */
function lags(record: ComputeRecord, group: FieldGroup, compute: Compute, readAtMs: number): boolean {
  const applied = fieldsOf(group, record.lastApplied);
  const { [group]: change } = record.lastChanges ?? {};
  const { [group]: mark } = record.manual ?? {};
  // A failed change leaves, or restores, the earlier values.
  if (!applied || record.failures?.[group] || hasSettings(compute, mark?.fields ?? applied)) return false;
  const sinceMs = readAtMs - (mark?.seenAtMs ?? change?.answeredAtMs ?? Number.NEGATIVE_INFINITY);
  const known = Math.max(change?.updatedAtMs ?? 0, mark?.updatedAtMs ?? 0);
  if (compute.updatedAtMs !== undefined && compute.updatedAtMs < known && sinceMs < MOST_LAG_MS) return true;
  return change !== undefined && hasSettings(compute, change.before) && readAtMs - change.answeredAtMs < LAG_MS;
}
