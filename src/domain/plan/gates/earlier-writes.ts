import type { Compute } from '../../compute/compute.ts';
import type { ComputeRecord, Failures } from '../../records/compute-record.ts';
import { isDegraded, sameFields } from '../../records/failures.ts';
import { RECOVERY } from '../../records/recovery-times.ts';
import { HOUR_MS, isoInstant } from '../../time/units.ts';
import type { Gate } from './gate.ts';

/** Holds all changes while an earlier one without an answer may still take effect. */
export const answerUnknown: Gate = ({ record }) => {
  if (!record?.intent) return undefined;
  const untilMs = record.intent.atMs + RECOVERY.answerGraceMs;
  return {
    code: 'answer_unknown',
    message: 'a change was sent and got no clear answer; it may still take effect',
    untilMs,
  };
};

/** The interval between readings of lagging fields, in milliseconds. */
const READ_AGAIN_MS = 10_000;

/** Holds changes of lagging fields: the compute already has a newer value than the reading shows. */
export const readingLags: Gate = ({ change: { group }, record, nowMs }) => {
  if (group === 'restart' || !record?.lagging?.[group]) return undefined;
  const { [group]: change } = record.lastChanges ?? {};
  const isByEbb = change !== undefined && record.manual?.[group] === undefined;
  const since = isByEbb ? `ebb's change at ${isoInstant(change.answeredAtMs)}` : 'a change that it has shown already';
  const message = `the control API still shows the values from before ${since}; it is read again`;
  return { code: 'reading_lags', message, untilMs: nowMs + READ_AGAIN_MS };
};

/** The state `init` is not taken as a running operation: a compute that stays in it must not block its project for ever. */
export function hasOperationRunning(compute: Compute, record: ComputeRecord | undefined): boolean {
  return compute.pendingState !== undefined || (record?.openOperations.length ?? 0) > 0;
}

/** Holds changes while any operation runs in the project: the control API would refuse them (423). */
export const operationRunning: Gate = ({ compute, record, projectBusy }) => {
  if (hasOperationRunning(compute, record)) {
    return { code: 'operation_running', message: 'an operation of this compute is under way' };
  }
  if (projectBusy) return { code: 'operation_running', message: 'an operation of this project is under way' };
  return undefined;
};

const FIRST_RETRY_MS = 20_000;
/** The wait after a refusal, which may be temporary, for example while keys or plans are changed. */
const REFUSED_RETRY_MS = 60_000;
const DEGRADED_RETRY_MS = HOUR_MS;

/**
 * The instant of the next retry, milliseconds since the epoch. A failed change is retried after 20 s and 40 s, a refused one after 60 s, a
 * degraded one every hour.
 */
function retryAtMs(failures: Failures): number {
  const { count, lastAtMs, refused } = failures;
  if (isDegraded(failures)) return lastAtMs + DEGRADED_RETRY_MS;
  return lastAtMs + (refused ? REFUSED_RETRY_MS : FIRST_RETRY_MS * 2 ** (count - 1));
}

/** Delays a retry of a failed change. A change to other values does not wait. */
export const failedBefore: Gate = ({ change, record, nowMs }) => {
  const failures = record?.failures?.[change.group];
  if (!failures || nowMs >= retryAtMs(failures) || !sameFields(change.fields, failures.desired)) return undefined;
  const code = isDegraded(failures) ? 'degraded' : 'retry_later';
  return { code, message: `failed ${failures.count}×, last: ${failures.message}`, untilMs: retryAtMs(failures) };
};
