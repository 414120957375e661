import type { ComputeRecord } from '../records/compute-record.ts';
import { RESTORE_LASTS_MS } from './restore.ts';

/** How far a stored instant may be ahead of the clock, in milliseconds. One further ahead comes from a wrong clock. */
export const MAX_AHEAD_MS = 5 * 60_000;

/**
 * Returns the record with every instant that is too far ahead set to now, and by how much the farthest was ahead, in milliseconds; the
 * same record and 0 if there is none. Any number that is large enough counts as an instant.
 */
export function withoutInstantsAhead(record: ComputeRecord, nowMs: number): { record: ComputeRecord; aheadMs: number } {
  let aheadMs = 0;
  function correct(value: unknown, key: string): unknown {
    if (typeof value === 'number') {
      // Only the expiry of a restore is meant to be in the future.
      const latestMs = key === 'expiresAtMs' ? nowMs + RESTORE_LASTS_MS : nowMs;
      if (value - latestMs <= MAX_AHEAD_MS) return value;
      aheadMs = Math.max(aheadMs, value - latestMs);
      return latestMs;
    }
    if (Array.isArray(value)) return value.map((item) => correct(item, key));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, correct(field, name)]));
  }
  const corrected = correct(record, '') as ComputeRecord;
  return { record: aheadMs === 0 ? record : corrected, aheadMs };
}

/** Moves the creation of an override that is too far ahead to now; the duration stays. */
export function createdByNow<E extends { createdAtMs: number; expiresAtMs: number }>(entry: E, nowMs: number): E {
  const aheadMs = entry.createdAtMs - nowMs;
  if (aheadMs <= MAX_AHEAD_MS) return entry;
  return { ...entry, createdAtMs: nowMs, expiresAtMs: entry.expiresAtMs - aheadMs };
}
