import { type Compute, hasSettings, settingsOf } from './compute.ts';
import type { ComputeRecord } from './compute-record.ts';
import { withFailure } from './failures.ts';
import { ANSWER_GRACE_MS } from './gates/answer-unknown.ts';

/** The record of a compute that ebb has not met before: what it has now is its baseline. */
export function firstRecord(compute: Compute, nowMs: number): ComputeRecord {
  return {
    baseline: settingsOf(compute),
    firstSeenAtMs: nowMs,
    lastApplied: {},
    lastDecidedAtMs: nowMs,
    openOperations: [],
  };
}

/**
 * What became of a change whose answer never arrived: it is there (then it is what was last applied), it can no longer
 * arrive (then it has failed, and is wanted anew), or it is too early to say. Nothing is ever sent to find out.
 */
export function settleIntent(record: ComputeRecord, actual: Compute, nowMs: number): ComputeRecord {
  if (!record.intent) return record;
  const { intent, ...settled } = record;
  const fields = intent.fields ?? {};
  if (intent.fields && hasSettings(actual, fields)) {
    return { ...settled, lastApplied: { ...record.lastApplied, ...fields } };
  }
  if (intent.restart && (actual.startedAtMs ?? 0) >= intent.atMs) return settled;
  if (nowMs < intent.atMs + ANSWER_GRACE_MS) return record;
  // It failed when it was sent: whoever finds it after a crash has waited already.
  return withFailure(settled, { desired: fields, message: 'no answer came', atMs: intent.atMs, permanent: false });
}
