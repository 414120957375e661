import type { ComputeRecord } from '../records/compute-record.ts';
import { RESTORE_LASTS_MS } from './restore.ts';

/** So far, in milliseconds, a stored instant may be ahead of the clock; more was stored by a clock that was wrong. */
export const MOST_AHEAD_MS = 5 * 60_000;

/**
 * The record with every instant that is too far ahead set to now: whatever waits since then waits from now on, and nothing waits for
 * an instant that no clock has reached. The same record, and 0, if there is none. Numbers that are as large are instants.
 */
export function withoutInstantsAhead(record: ComputeRecord, nowMs: number): { record: ComputeRecord; aheadMs: number } {
  let aheadMs = 0;

  function correct(value: unknown, key: string): unknown {
    if (typeof value === 'number') {
      // The only one that is meant to lie ahead.
      const latestMs = key === 'expiresAtMs' ? nowMs + RESTORE_LASTS_MS : nowMs;
      if (value - latestMs <= MOST_AHEAD_MS) return value;
      aheadMs = Math.max(aheadMs, value - latestMs);
      return latestMs;
    }
    if (Array.isArray(value)) return value.map((one) => correct(one, key));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, correct(one, name)]));
  }

  const corrected = correct(record, '') as ComputeRecord;
  return aheadMs === 0 ? { record, aheadMs } : { record: corrected, aheadMs };
}

/** What a person said at an instant too far ahead was said now, and lasts as long as it was meant to. */
export function createdByNow<E extends { createdAtMs: number; expiresAtMs: number }>(entry: E, nowMs: number): E {
  const aheadMs = entry.createdAtMs - nowMs;
  if (aheadMs <= MOST_AHEAD_MS) return entry;
  return { ...entry, createdAtMs: nowMs, expiresAtMs: entry.expiresAtMs - aheadMs };
}
