import type { ComputeRecord } from '../records/compute-record.ts';
import { RESTORE_LASTS_MS } from './restore.ts';

/** So far, in milliseconds, a stored instant may be ahead of the clock; more was stored by a clock that was wrong. */
export const MOST_AHEAD_MS = 5 * 60_000;

/**
 * The record with every instant that is too far ahead set to now: whatever waits since then waits from now on, and nothing waits for
 * an instant that no clock has reached. The same record, and 0, if there is none. Numbers that are as large are instants.
 */
export function withoutInstantsAhead(record: ComputeRecord, nowMs: number): { record: ComputeRecord; aheadMs: number } {
  const aheadMs = farthestAheadMs(record, '', nowMs);
  return aheadMs === 0 ? { record, aheadMs } : { record: correct(record, '', nowMs) as ComputeRecord, aheadMs };
}

/** How far the latest instant is too far ahead, in milliseconds; 0 if none is. */
function farthestAheadMs(value: unknown, key: string, nowMs: number): number {
  if (typeof value === 'number') return isTooFar(value, key, nowMs) ? value - latestMs(key, nowMs) : 0;
  if (typeof value !== 'object' || value === null) return 0;
  const isList = Array.isArray(value);
  let farthestMs = 0;
  for (const [name, one] of Object.entries(value)) {
    farthestMs = Math.max(farthestMs, farthestAheadMs(one, isList ? key : name, nowMs));
  }
  return farthestMs;
}

function correct(value: unknown, key: string, nowMs: number): unknown {
  if (typeof value === 'number') return isTooFar(value, key, nowMs) ? latestMs(key, nowMs) : value;
  if (Array.isArray(value)) return value.map((one) => correct(one, key, nowMs));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, correct(one, name, nowMs)]));
}

function isTooFar(instantMs: number, key: string, nowMs: number): boolean {
  return instantMs - latestMs(key, nowMs) > MOST_AHEAD_MS;
}

/** The end of a restore is the only instant that is meant to lie ahead. */
function latestMs(key: string, nowMs: number): number {
  return key === 'expiresAtMs' ? nowMs + RESTORE_LASTS_MS : nowMs;
}

/** An override with a creation time too far ahead counts from now, and lasts as long as it was meant to. */
export function createdByNow<E extends { createdAtMs: number; expiresAtMs: number }>(entry: E, nowMs: number): E {
  const aheadMs = entry.createdAtMs - nowMs;
  if (aheadMs <= MOST_AHEAD_MS) return entry;
  return { ...entry, createdAtMs: nowMs, expiresAtMs: entry.expiresAtMs - aheadMs };
}
