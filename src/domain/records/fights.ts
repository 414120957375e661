/**
 * Prevents fights with people and other programs. A field that was changed back three times in a day, or on three of seven days, is
 * left alone until a person releases it. Source: docs/policies.md, "People".
 */
import { FIELD_GROUPS, type FieldGroup } from '../compute/compute.ts';
import { DAY_MS, WEEK_MS } from '../time/units.ts';
import type { ComputeRecord } from './compute-record.ts';

const MAX_REVERSALS_PER_DAY = 3;
const MAX_REVERSAL_DAYS_PER_WEEK = 3;
/** Detecting a fight never needs more reversals than this. */
const MAX_REVERSALS_KEPT = 10;

/** Returns the record after ebb has overwritten another value. */
export function withReversal(record: ComputeRecord, group: FieldGroup, nowMs: number): ComputeRecord {
  const before = record.reversals?.[group] ?? [];
  return { ...record, reversals: { ...record.reversals, [group]: [...before, nowMs].slice(-MAX_REVERSALS_KEPT) } };
}

/** True if a field was changed back so often that it is left alone, until it is released. */
export function isFightStopped(record: ComputeRecord | undefined, group: FieldGroup): boolean {
  const reversals = record?.reversals?.[group] ?? [];
  return reversals.some((lastMs, index) => {
    const soFar = reversals.slice(0, index + 1);
    const lastDay = soFar.filter((ms) => lastMs - ms < DAY_MS);
    const days = new Set(soFar.filter((ms) => lastMs - ms < WEEK_MS).map((ms) => Math.floor(ms / DAY_MS)));
    return lastDay.length >= MAX_REVERSALS_PER_DAY || days.size >= MAX_REVERSAL_DAYS_PER_WEEK;
  });
}

/** Returns the record without reversals: no field is left alone any more. */
export function withoutReversals(record: ComputeRecord): ComputeRecord {
  const { reversals: _forgotten, ...rest } = record;
  return rest;
}

/** The groups of fields that are left alone after a fight. */
export function stoppedGroups(record: ComputeRecord): FieldGroup[] {
  return FIELD_GROUPS.filter((group) => isFightStopped(record, group));
}

/**
 * Returns the record with all fields released: no field is left alone after a fight, and no manual change is respected. Marks of manual changes
 * stay, but count as seen long ago: without them the same values would be detected again. Returns the same record if there is nothing to release.
 */
export function releaseRecord(record: ComputeRecord): ComputeRecord {
  const released = stoppedGroups(record).length > 0 ? withoutReversals(record) : record;
  const marks = Object.entries(record.manual ?? {});
  if (marks.every(([, mark]) => mark.seenAtMs === 0)) return released;
  return { ...released, manual: Object.fromEntries(marks.map(([group, mark]) => [group, { ...mark, seenAtMs: 0 }])) };
}
