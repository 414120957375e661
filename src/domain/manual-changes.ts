/**
 * What people change by hand. A value is ebb's own if it is what was last applied, or what an open change asks for; any other
 * is a person's. Instants are milliseconds since the epoch.
 */
import { isRaise } from './change.ts';
import { type Compute, type ComputeSettings, hasSettings, type Size } from './compute.ts';
import type { ComputeRecord, ManualMark } from './compute-record.ts';
import type { Desired, FieldGroup } from './desired.ts';
import type { ManualChanges } from './disruption.ts';
import { hasOperationRunning } from './gates/operation-running.ts';

const HOUR_MS = 60 * 60_000;

/** Where no boundary is near, a change by hand is respected so long. */
const MOST_RESPECTED_MS = 24 * HOUR_MS;

/** A raise by hand is respected at least so long: somebody needed it. */
const RAISE_RESPECTED_MS = 12 * HOUR_MS;

const GROUPS = ['size', 'suspend_timeout'] as const;

/**
 * A record in which changes by hand are marked, and marks of values that are gone are removed. Nothing is judged while a
 * change of ebb's own, or any operation, is under way. What is respected is from then on the baseline of its fields.
 */
export function noticeManualChanges(record: ComputeRecord, compute: Compute, nowMs: number): ComputeRecord {
  if (record.intent || hasOperationRunning(compute, record)) return record;
  let noticed = record;
  for (const group of GROUPS) {
    const applied = fieldsOf(group, record.lastApplied);
    // An operation that failed leaves what was there before: nobody has changed anything.
    const failed = record.failures && fieldsOf(group, record.failures.desired);
    if (!applied || failed) continue;
    if (hasSettings(compute, applied)) noticed = withoutMark(noticed, group);
    else if (!isMarked(noticed, group, compute)) noticed = withMark(noticed, group, compute, nowMs);
  }
  return noticed;
}

/** A record in which values that policies want by now are ebb's own, whoever has set them. */
export function withAgreed(record: ComputeRecord, compute: Compute, enforced: Desired): ComputeRecord {
  const wanted = { ...enforced.size, suspendTimeoutSeconds: enforced.suspendTimeoutSeconds ?? undefined };
  return GROUPS.reduce((after, group) => {
    const fields = fieldsOf(group, wanted);
    if (!after.manual?.[group] || !fields || !hasSettings(compute, fields)) return after;
    return { ...withoutMark(after, group), lastApplied: { ...after.lastApplied, ...fields } };
  }, record);
}

/** Until when a change by hand is respected; `nextBoundaryAfter` knows the boundaries of its field. */
export function respectedUntil(
  { seenAtMs, raises }: ManualMark,
  rule: ManualChanges,
  nextBoundaryAfter: (afterMs: number) => number | undefined,
): number {
  if (rule.kind === 'revert') return seenAtMs;
  if (rule.kind === 'respect-for') return seenAtMs + rule.forMs;
  const boundaryMs = Math.min(nextBoundaryAfter(seenAtMs) ?? Number.POSITIVE_INFINITY, seenAtMs + MOST_RESPECTED_MS);
  return raises ? Math.max(boundaryMs, seenAtMs + RAISE_RESPECTED_MS) : boundaryMs;
}

function isMarked({ manual }: ComputeRecord, group: FieldGroup, compute: Compute): boolean {
  const mark = manual?.[group];
  return mark !== undefined && hasSettings(compute, mark.fields);
}

function withMark(record: ComputeRecord, group: FieldGroup, compute: Compute, nowMs: number): ComputeRecord {
  const fields = fieldsOf(group, compute) ?? {};
  const raises = group === 'size' && isRaise(record.lastApplied as Size, compute);
  return {
    ...record,
    baseline: { ...record.baseline, ...fields },
    manual: { ...record.manual, [group]: { fields, seenAtMs: nowMs, raises } },
  };
}

export function withoutMark(record: ComputeRecord, group: FieldGroup): ComputeRecord {
  if (!record.manual?.[group]) return record;
  const { [group]: _gone, ...others } = record.manual;
  const { manual: _old, ...rest } = record;
  return Object.keys(others).length > 0 ? { ...rest, manual: others } : rest;
}

/** The fields of a group; undefined unless all of them are known. */
export function fieldsOf(
  group: FieldGroup,
  { minCu, maxCu, suspendTimeoutSeconds }: { [Field in keyof ComputeSettings]?: number | undefined },
): Partial<ComputeSettings> | undefined {
  if (group === 'size') return minCu === undefined || maxCu === undefined ? undefined : { minCu, maxCu };
  return suspendTimeoutSeconds === undefined ? undefined : { suspendTimeoutSeconds };
}
