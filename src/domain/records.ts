import { type Compute, type ComputeSettings, hasSettings, settingsOf } from './compute.ts';
import type { ComputeRecord, Failures } from './compute-record.ts';
import { ANSWER_GRACE_MS } from './gates/answer-unknown.ts';
import { FAILURES_UNTIL_DEGRADED } from './gates/failed-before.ts';

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

/** A record without failures, once what was wanted is there and nothing is under way: however it got there. */
export function forgetOvercome(record: ComputeRecord, actual: ComputeSettings): ComputeRecord {
  if (!record.failures || record.openOperations.length > 0 || record.intent) return record;
  const { desired } = record.failures;
  // A restart that failed wanted no settings: it is overcome by the next change that goes through.
  if (Object.keys(desired).length === 0 || !hasSettings(actual, desired)) return record;
  const { failures: _overcome, ...healthy } = record;
  return healthy;
}

/** A record after one more failure of the same wish. A refusal counts as the last of them: repeating it is pointless. */
export function withFailure(
  record: ComputeRecord,
  failure: { desired: Partial<ComputeSettings>; message: string; atMs: number; permanent: boolean },
): ComputeRecord {
  const before = record.failures && sameWish(record.failures, failure.desired) ? record.failures.count : 0;
  const count = failure.permanent ? Math.max(before + 1, FAILURES_UNTIL_DEGRADED) : before + 1;
  const failures = { count, lastAtMs: failure.atMs, desired: failure.desired, message: failure.message };
  return { ...record, failures };
}

function sameWish(failures: Failures, desired: Partial<ComputeSettings>): boolean {
  return (
    failures.desired.minCu === desired.minCu &&
    failures.desired.maxCu === desired.maxCu &&
    failures.desired.suspendTimeoutSeconds === desired.suspendTimeoutSeconds
  );
}
