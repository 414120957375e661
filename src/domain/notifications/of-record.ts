import { type Compute, FIELD_GROUPS, hasSettings } from '../compute/compute.ts';
import { formatSize } from '../compute/compute-units.ts';
import { describeManualChange } from '../plan/manual-changes.ts';
import type { ComputeRecord, Intent } from '../records/compute-record.ts';
import { isDegraded, worstFailures } from '../records/failures.ts';
import type { Notification } from './notification.ts';

/** Two successive records of a compute. `compute` is as it is with the new one; `nowMs` is when the change was found. */
export interface RecordChange {
  compute: Compute;
  before: ComputeRecord;
  after: ComputeRecord;
  nowMs: number;
}

type Found = Omit<Notification, 'projectId' | 'projectName' | 'computeId'>;

/**
 * The notifications about a changed record: the same for the same two records, so that a daemon that finds a pending write of a dead one
 * reports what that one would have reported.
 */
export function recordNotifications(change: RecordChange): Notification[] {
  const { projectId, projectName, computeId } = change.compute;
  const found = [...manualChanges(change), ...endedWrite(change), ...newlyDegraded(change)];
  return found.map((one) => ({ ...one, projectId, projectName, computeId }));
}

function manualChanges({ compute: { computeId }, before, after }: RecordChange): Found[] {
  return FIELD_GROUPS.flatMap((group): Found[] => {
    const mark = after.manual?.[group];
    if (!mark || mark.seenAtMs === before.manual?.[group]?.seenAtMs) return [];
    return [
      {
        ...{ id: `manual_change:${computeId}:${group}:${mark.seenAtMs}`, kind: 'manual_change', atMs: mark.seenAtMs },
        text: `${computeId}: ${describeManualChange(group, after.lastApplied, mark.fields)}`,
        command: `ebb release ${computeId}`,
      },
    ];
  });
}

/** A pending write that is there no longer, because it took effect. */
function endedWrite({ compute, before: { intent }, after, nowMs }: RecordChange): Found[] {
  if (!intent || after.intent || !tookEffect(intent, compute)) return [];
  const { computeId } = compute;
  const { atMs, policy, dropped = 0, urgent } = intent;
  const made = intent.fields ? `was changed to ${formatSize(compute)} CU` : 'was restarted';
  const base = { atMs: nowMs, ...(policy !== undefined && { policy }) };
  const found: Found[] = [];
  if (urgent) {
    const text = `${computeId} had few connections left: its size was raised at once to ${formatSize(compute)} CU`;
    found.push({ ...base, id: `raised_by_critical:${computeId}:${atMs}`, kind: 'raised_by_critical', text });
  }
  if (dropped > 0) {
    const text = `${computeId} ${made}, which disconnected ${dropped} ${dropped === 1 ? 'client' : 'clients'}`;
    found.push({ ...base, id: `connections_dropped:${computeId}:${atMs}`, kind: 'connections_dropped', text });
  }
  return found;
}

function tookEffect({ fields, atMs }: Intent, compute: Compute): boolean {
  return fields ? hasSettings(compute, fields) : (compute.startedAtMs ?? atMs) >= atMs;
}

function newlyDegraded({ compute: { computeId }, before, after }: RecordChange): Found[] {
  const worst = worstFailures(after);
  if (!worst || !isDegraded(worst) || worst.count === worstFailures(before)?.count) return [];
  const { count, lastAtMs, message } = worst;
  const text = `${computeId} can't be changed (${count} failures, last: ${message}); it is tried again in an hour`;
  return [
    {
      id: `degraded:${computeId}:${lastAtMs}`,
      kind: 'degraded',
      atMs: lastAtMs,
      text,
      command: `ebb explain ${computeId}`,
    },
  ];
}
