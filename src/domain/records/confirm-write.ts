import { type Compute, hasSettings } from '../compute/compute.ts';
import type { ComputeRecord } from './compute-record.ts';
import { withFailure } from './failures.ts';

/** How long a request that got no answer may still take effect, in milliseconds; longer than any call's deadline. */
export const ANSWER_GRACE_MS = 20_000;

/**
 * What became of a change whose answer never arrived: it is there (then it is what was last applied), it can no longer
 * arrive (then it has failed, and is wanted again), or it is too early to say. Nothing is ever sent to find out.
 */
export function confirmWrite(record: ComputeRecord, actual: Compute, nowMs: number): ComputeRecord {
  if (!record.intent) return record;
  const { intent, ...answered } = record;
  const fields = intent.fields ?? {};
  if (intent.fields && hasSettings(actual, fields)) {
    return { ...answered, lastApplied: { ...record.lastApplied, ...fields } };
  }
  if (intent.restart && (actual.startedAtMs ?? 0) >= intent.atMs) return answered;
  if (nowMs < intent.atMs + ANSWER_GRACE_MS) return record;
  // It failed when it was sent: a daemon that finds it after a crash has waited already.
  return withFailure(answered, { desired: fields, message: 'no answer came', atMs: intent.atMs, permanent: false });
}
