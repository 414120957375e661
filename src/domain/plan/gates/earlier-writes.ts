import type { Compute } from '../../compute/compute.ts';
import type { ComputeRecord, Failures } from '../../records/compute-record.ts';
import { isDegraded, sameFields } from '../../records/failures.ts';
import { RECOVERY } from '../../records/recovery-times.ts';
import type { Gate } from './gate.ts';

/** A change that was sent without an answer may still arrive: nothing is sent until it is seen, or surely lost. */
export const answerUnknown: Gate = ({ record }) => {
  if (!record?.intent) return undefined;
  const untilMs = record.intent.atMs + RECOVERY.answerGraceMs;
  return { code: 'answer_unknown', message: 'a change was sent and got no answer; it may still take effect', untilMs };
};

/**
 * True if an operation of the compute is running, as shown by the compute itself or ebb's record. A compute that never got beyond `init`,
 * with nothing pending, must not block its project for ever.
 */
export function hasOperationRunning(compute: Compute, record: ComputeRecord | undefined): boolean {
  return compute.pendingState !== undefined || (record?.openOperations.length ?? 0) > 0;
}

/** The control API refuses changes to a project while an operation runs in it (423), whoever started it. */
export const operationRunning: Gate = ({ compute, record, projectBusy }) => {
  if (hasOperationRunning(compute, record)) {
    return { code: 'operation_running', message: 'an operation of this compute is under way' };
  }
  if (projectBusy) return { code: 'operation_running', message: 'an operation of this project is under way' };
  return undefined;
};

const FIRST_RETRY_MS = 20_000;
/** A refusal may be temporary, as while keys or plans are changed: the first one is trusted for this long. */
const REFUSED_RETRY_MS = 60_000;
const DEGRADED_RETRY_MS = 60 * 60 * 1000;

/**
 * When a failed change may be tried again: after 20 s, 40 s, or 60 s where it was refused; then every hour. Milliseconds since the epoch.
 */
function retryAtMs(failures: Failures): number {
  const { count, lastAtMs, refused } = failures;
  if (isDegraded(failures)) return lastAtMs + DEGRADED_RETRY_MS;
  return lastAtMs + (refused ? REFUSED_RETRY_MS : FIRST_RETRY_MS * 2 ** (count - 1));
}

/** A change that failed is tried again with growing waits; one that wants something else starts again. */
export const failedBefore: Gate = ({ change, record, nowMs }) => {
  const failures = record?.failures?.[change.group];
  if (!failures || nowMs >= retryAtMs(failures) || !sameFields(change.fields, failures.desired)) return undefined;
  const code = isDegraded(failures) ? 'degraded' : 'retry_later';
  return { code, message: `failed ${failures.count}×, last: ${failures.message}`, untilMs: retryAtMs(failures) };
};
