import { type Compute, hasSettings } from '../compute/compute.ts';
import type { ComputeRecord, Restore } from '../records/compute-record.ts';

/** What stands in the place of a policy's name where a restore speaks. */
export const RESTORE = 'restore';

/** A policy that takes its time may stand in the way until its window closes, but nobody expects a change a week later. */
export const RESTORE_LASTS_MS = 24 * 60 * 60_000;

/** A record in which the compute is wanted back at its baseline. */
export function withRestore(
  record: ComputeRecord,
  asked: { owner: string; nowMs: number; now: boolean },
): ComputeRecord {
  const { owner, nowMs, now } = asked;
  const times = { askedAtMs: nowMs, expiresAtMs: nowMs + RESTORE_LASTS_MS };
  return { ...record, restore: { owner, ...times, ...(now && { now: true as const }) } };
}

/** What a person wants back, while that still counts. */
export function restoreAt(record: ComputeRecord | undefined, nowMs: number): Restore | undefined {
  return record?.restore && nowMs < record.restore.expiresAtMs ? record.restore : undefined;
}

/** A record without the request, once the compute is back or the request has expired. */
export function forgetRestored(record: ComputeRecord, compute: Compute, nowMs: number): ComputeRecord {
  if (!record.restore) return record;
  if (restoreAt(record, nowMs) && !hasSettings(compute, record.baseline)) return record;
  const { restore: _done, ...rest } = record;
  return rest;
}
