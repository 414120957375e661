import type { ComputeRecord, OpenOperation } from '../../domain/records/compute-record.ts';
import { isDegraded, withFailure, withoutFailures, worstFailures } from '../../domain/records/failures.ts';
import type { ComputeEvent } from '../../ports/compute-events.ts';
import type { Operation } from '../../ports/control-api.ts';

/** An operation that has not ended after this time counts as failed, in milliseconds. */
export const OPERATION_DEADLINE_MS = 10 * 60 * 1000;

interface ComputeId {
  projectId: string;
  computeId: string;
}

interface EndedOperation {
  open: OpenOperation;
  /** Undefined if the operation was never listed. */
  operation: Operation | undefined;
}

/** The record after a check (the same object if no operation has ended), and the events to report once it is stored. */
export interface RecordUpdate {
  record: ComputeRecord;
  events: ComputeEvent[];
}

/** Removes ended operations from a record, and counts failures. An operation that is not listed yet is still open. */
export function recordOperations(
  compute: ComputeId,
  record: ComputeRecord,
  found: ReadonlyMap<string, Operation>,
  nowMs: number,
): RecordUpdate {
  const ended: EndedOperation[] = [];
  const stillOpen: OpenOperation[] = [];
  for (const open of record.openOperations) {
    const operation = found.get(open.operationId);
    const overdue = nowMs - open.startedAtMs > OPERATION_DEADLINE_MS;
    if ((operation?.outcome ?? 'pending') === 'pending' && !overdue) stillOpen.push(open);
    else ended.push({ open, operation });
  }
  if (ended.length === 0) return { record, events: [] };
  const after = countFailures({ ...record, openOperations: stillOpen }, ended, nowMs);
  const news = ended.flatMap(({ open, operation }): ComputeEvent[] => {
    const policy = open.policy === undefined ? {} : { policy: open.policy };
    return operation ? [{ kind: 'operation_ended', compute, operation, ...policy }] : [];
  });
  const worst = worstFailures(after);
  if (worst && after.failures !== record.failures && isDegraded(worst)) {
    const { desired, count, message } = worst;
    news.push({ kind: 'degraded', compute, desired, failures: count, message });
  }
  return { record: after, events: news };
}

/**
 * Counts failed operations. One change starts several operations, and if one fails, Neon cancels the others: together they are one failure.
 * Failures are forgotten once all operations of a change have succeeded.
 */
function countFailures(record: ComputeRecord, ended: readonly EndedOperation[], nowMs: number): ComputeRecord {
  const bad = ended.filter(({ operation }) => operation?.outcome !== 'succeeded');
  if (bad.length === 0) {
    if (record.openOperations.length > 0) return record;
    return ended.reduce((after, { open }) => withoutFailures(after, open.fields ?? {}), record);
  }
  const fresh = bad.find(({ open }) => !open.failureCounted);
  if (!fresh) return record;
  const openOperations = record.openOperations.map((open) =>
    open.startedAtMs === fresh.open.startedAtMs ? { ...open, failureCounted: true as const } : open,
  );
  const failure = { desired: fresh.open.fields ?? {}, message: describeFailure(fresh), atMs: nowMs, permanent: false };
  // Retries handle the delay after a failure: a restart that did not happen needs no cooldown.
  const { lastDisruption: _failed, ...rest } = record;
  return withFailure({ ...rest, openOperations }, failure);
}

function describeFailure({ open, operation }: EndedOperation): string {
  const minutes = OPERATION_DEADLINE_MS / 60_000;
  if (!operation) return `${open.action} is not in the list of operations after ${minutes} minutes`;
  const { action, status, outcome, error } = operation;
  if (outcome === 'pending') return `${action} has not ended after ${minutes} minutes`;
  return `${action} ${status}${error ? `: ${error}` : ''}`;
}
