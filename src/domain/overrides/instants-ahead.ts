import type { ComputeRecord } from '../records/compute-record.ts';
import { RESTORE_LASTS_MS } from './restore.ts';

/** How far a stored instant may be ahead of the clock, in milliseconds. One further ahead comes from a wrong clock. */
export const MAX_AHEAD_MS = 5 * 60_000;

/**
 * Sets every instant of a record that is too far ahead to the latest plausible instant, so that waits begin now. Any number that is large enough
 * is taken for an instant. Returns the same record, and 0, if no instant is too far ahead.
 */
export function withoutInstantsAhead(record: ComputeRecord, nowMs: number): { record: ComputeRecord; aheadMs: number } {
  const aheadMs = farthestAheadMs(record, '', nowMs);
  return aheadMs === 0 ? { record, aheadMs } : { record: correct(record, '', nowMs) as ComputeRecord, aheadMs };
}

/** How far the farthest of the bad instants is ahead, in milliseconds; 0 if there is none. */
function farthestAheadMs(value: unknown, key: string, nowMs: number): number {
  if (typeof value === 'number') return isTooFar(value, key, nowMs) ? value - latestAllowedMs(key, nowMs) : 0;
  if (typeof value !== 'object' || value === null) return 0;
  const isList = Array.isArray(value);
  let farthestMs = 0;
  for (const [name, one] of Object.entries(value)) {
    farthestMs = Math.max(farthestMs, farthestAheadMs(one, isList ? key : name, nowMs));
  }
  return farthestMs;
}

function correct(value: unknown, key: string, nowMs: number): unknown {
  if (typeof value === 'number') return isTooFar(value, key, nowMs) ? latestAllowedMs(key, nowMs) : value;
  if (Array.isArray(value)) return value.map((one) => correct(one, key, nowMs));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, correct(one, name, nowMs)]));
}

function isTooFar(instantMs: number, key: string, nowMs: number): boolean {
  return instantMs - latestAllowedMs(key, nowMs) > MAX_AHEAD_MS;
}

/** The latest plausible instant. Only the expiry of a restore is meant to be in the future. */
function latestAllowedMs(key: string, nowMs: number): number {
  return key === 'expiresAtMs' ? nowMs + RESTORE_LASTS_MS : nowMs;
}

/** Moves an override that was created too far ahead to now; it keeps its duration. */
export function createdByNow<E extends { createdAtMs: number; expiresAtMs: number }>(entry: E, nowMs: number): E {
  const aheadMs = entry.createdAtMs - nowMs;
  if (aheadMs <= MAX_AHEAD_MS) return entry;
  return { ...entry, createdAtMs: nowMs, expiresAtMs: entry.expiresAtMs - aheadMs };
}
