import type { ComputeRecord, OpenOperation } from '../domain/compute-record.ts';
import { isDegraded } from '../domain/gates/failed-before.ts';
import { withFailure } from '../domain/records.ts';
import type { Operation } from '../ports/control-api.ts';
import type { Context } from './context.ts';

/** An operation that has not ended by then counts as failed, in milliseconds. */
const OPERATION_DEADLINE_MS = 10 * 60 * 1000;

interface ComputeId {
  projectId: string;
  computeId: string;
}

interface Ended {
  open: OpenOperation;
  /** Absent if it is no longer listed: what became of it shows in the compute itself. */
  operation: Operation | undefined;
}

/** The record after a look at its operations; the same object if none has ended. Says what ended, and counts failures. */
export function settleOperations(
  context: Context,
  compute: ComputeId,
  record: ComputeRecord,
  found: ReadonlyMap<string, Operation>,
): ComputeRecord {
  const nowMs = context.clock.now();
  const ended: Ended[] = [];
  const stillOpen: OpenOperation[] = [];
  for (const open of record.openOperations) {
    const operation = found.get(open.operationId);
    const overdue = nowMs - open.startedAtMs > OPERATION_DEADLINE_MS;
    if (operation?.outcome === 'pending' && !overdue) stillOpen.push(open);
    else ended.push({ open, operation });
  }
  if (ended.length === 0) return record;
  for (const { open, operation } of ended) {
    const policy = open.policy === undefined ? {} : { policy: open.policy };
    if (operation) context.notify({ kind: 'operation_ended', compute, operation, ...policy });
  }
  return countFailures(context, compute, { ...record, openOperations: stillOpen }, ended);
}

/**
 * One change starts several operations, and if one fails the platform cancels the others: together they are one failure.
 * Failures are forgotten once a change has gone through whole.
 */
function countFailures(
  context: Context,
  compute: ComputeId,
  record: ComputeRecord,
  ended: readonly Ended[],
): ComputeRecord {
  const bad = ended.filter(({ operation }) => operation !== undefined && operation.outcome !== 'succeeded');
  const fresh = bad.find(({ open }) => !open.failureCounted);
  if (bad.length === 0) {
    const { failures: _overcome, ...healthy } = record;
    return record.openOperations.length === 0 ? healthy : record;
  }
  if (!fresh?.operation) return record;
  const message = describeFailure(fresh.operation);
  const desired = fresh.open.fields ?? {};
  const openOperations = record.openOperations.map((open) =>
    open.startedAtMs === fresh.open.startedAtMs ? { ...open, failureCounted: true as const } : open,
  );
  const failure = { desired, message, atMs: context.clock.now(), permanent: false };
  const after = withFailure({ ...record, openOperations }, failure);
  const failures = after.failures?.count ?? 0;
  if (isDegraded(after.failures)) context.notify({ kind: 'degraded', compute, desired, failures, message });
  return after;
}

function describeFailure({ action, status, outcome, error }: Operation): string {
  if (outcome === 'pending') return `${action} has not ended after ${OPERATION_DEADLINE_MS / 60_000} minutes`;
  return `${action} ${status}${error ? `: ${error}` : ''}`;
}
