/**
 * Detects manual changes. A value is ebb's own if it was last applied, or is part of an open change; any other is a person's. Instants are
 * milliseconds since the epoch.
 */

import {
  type Compute,
  type ComputeSettings,
  FIELD_GROUPS,
  type FieldGroup,
  fieldsOf,
  hasSettings,
  type Size,
  wantedFields,
} from '../compute/compute.ts';
import { formatSize, formatSuspendTimeout } from '../compute/compute-units.ts';
import type { Decision } from '../decide/decide.ts';
import { restoreFields } from '../overrides/restore.ts';
import type { ManualChanges } from '../policy/disruption.ts';
import type { ComputeRecord, ManualMark } from '../records/compute-record.ts';
import { HOUR_MS } from '../time/units.ts';
import { isRaise } from './change.ts';
import { hasOperationRunning } from './gates/earlier-writes.ts';

/** A value becomes the baseline once a reading that begins this long after the first one shows it too. */
export const BASELINE_CONFIRMED_MS = 30_000;

/** The respect for a manual change where no boundary is near. */
const MOST_RESPECTED_MS = 24 * HOUR_MS;

/** A manual raise is respected for at least this long: somebody needed it. */
const RAISE_RESPECTED_MS = 12 * HOUR_MS;

/**
 * A record with manual changes marked, and without marks of values that are gone. Nothing is detected while a change of ebb's own, or any
 * operation, is running, nor from fields that lag. A respected change becomes the baseline of its fields once a reading that begins 30 s
 * later shows it too; one that `isReverted` does not.
 */
export function detectManualChanges(
  record: ComputeRecord,
  compute: Compute,
  { nowMs, readAtMs }: { nowMs: number; readAtMs: number },
  isReverted: (group: FieldGroup) => boolean,
): ComputeRecord {
  if (record.intent || hasOperationRunning(compute, record)) return record;
  let noticed = record;
  for (const group of FIELD_GROUPS) {
    const applied = fieldsOf(group, record.lastApplied);
    if (!applied) noticed = withUnchanged(noticed, group, compute);
    // A failed operation leaves the earlier values: nobody has changed anything.
    if (!applied || record.failures?.[group] || record.lagging?.[group]) continue;
    noticed = confirmBaseline(noticed, group, compute, readAtMs);
    if (hasSettings(compute, applied)) noticed = withoutMark(noticed, group);
    else if (!isMarked(noticed, group, compute)) {
      const marked = withMark(noticed, group, compute, nowMs);
      noticed = isReverted(group) ? marked : withCandidate(marked, group, compute, readAtMs);
    }
  }
  return noticed;
}

/**
 * A record in which values that policies want by now are ebb's own, whoever set them. Not where only missing counts keep them: then no
 * policy has agreed.
 */
export function withAgreed(record: ComputeRecord, compute: Compute, decision: Decision): ComputeRecord {
  return FIELD_GROUPS.reduce((after, group) => {
    const fields = wantedFields(group, decision.enforced);
    if (!fields || !hasSettings(compute, fields) || record.lagging?.[group]) return after;
    const code = decision.enforcedDeciders[group]?.code;
    if (code === 'stabilising' || code === 'connections_unknown') return after;
    const isNews = !hasSettings({ ...compute, ...after.lastApplied }, fields) || !fieldsOf(group, after.lastApplied);
    const own = withoutMark(after, group);
    return isNews ? { ...own, lastApplied: { ...after.lastApplied, ...fields } } : own;
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

/** Describes a manual change, and the value that ebb had applied before. */
export function describeManualChange(
  group: FieldGroup,
  applied: Partial<ComputeSettings>,
  fields: Partial<ComputeSettings>,
): string {
  const [from, to] = [applied, fields].map((settings) => valueText(group, settings));
  return `${group === 'size' ? 'size' : 'suspend_after'} changed by a person: ${from} → ${to}`;
}

function valueText(group: FieldGroup, { minCu, maxCu, suspendTimeoutSeconds }: Partial<ComputeSettings>): string {
  if (group === 'suspend_timeout') {
    return suspendTimeoutSeconds === undefined ? '?' : formatSuspendTimeout(suspendTimeoutSeconds);
  }
  return minCu === undefined || maxCu === undefined ? '?' : `${formatSize({ minCu, maxCu })} CU`;
}

function isMarked({ manual }: ComputeRecord, group: FieldGroup, compute: Compute): boolean {
  const mark = manual?.[group];
  return mark !== undefined && hasSettings(compute, mark.fields);
}

/** Before ebb's first change whatever is there is the baseline, unless a person wants the values of a file back: those are kept. */
function withUnchanged(record: ComputeRecord, group: FieldGroup, compute: Compute): ComputeRecord {
  return restoreFields(record).includes(group) ? record : withBaseline(record, group, compute);
}

/** The record with the present values as the baseline. The same record if they are known. */
function withBaseline(record: ComputeRecord, group: FieldGroup, compute: Compute): ComputeRecord {
  const fields = fieldsOf(group, compute) ?? {};
  return hasSettings(record.baseline, fields) ? record : { ...record, baseline: { ...record.baseline, ...fields } };
}

/** One reading may be wrong: the value waits for another reading before it becomes the baseline. */
function withCandidate(record: ComputeRecord, group: FieldGroup, compute: Compute, readAtMs: number): ComputeRecord {
  const fields = fieldsOf(group, compute) ?? {};
  if (hasSettings(record.baseline, fields)) return record;
  return { ...record, baselineCandidates: { ...record.baselineCandidates, [group]: { fields, readAtMs } } };
}

/** Another reading shows the candidate too, or that it is gone. The same record as long as it was only read once. */
function confirmBaseline(record: ComputeRecord, group: FieldGroup, compute: Compute, readAtMs: number): ComputeRecord {
  const { [group]: candidate, ...others } = record.baselineCandidates ?? {};
  if (!candidate) return record;
  const isThere = hasSettings(compute, candidate.fields);
  if (isThere && readAtMs - candidate.readAtMs < BASELINE_CONFIRMED_MS) return record;
  const { baselineCandidates: _before, ...rest } = record;
  const decided = Object.keys(others).length > 0 ? { ...rest, baselineCandidates: others } : rest;
  return isThere ? withBaseline(decided, group, compute) : decided;
}

function withMark(record: ComputeRecord, group: FieldGroup, compute: Compute, nowMs: number): ComputeRecord {
  const fields = fieldsOf(group, compute) ?? {};
  const { updatedAtMs } = compute;
  const raises = group === 'size' && isRaise(record.lastApplied as Size, compute);
  return {
    ...record,
    manual: { ...record.manual, [group]: { fields, seenAtMs: nowMs, raises, ...(updatedAtMs && { updatedAtMs }) } },
  };
}

export function withoutMark(record: ComputeRecord, group: FieldGroup): ComputeRecord {
  if (!record.manual?.[group]) return record;
  const { [group]: _gone, ...others } = record.manual;
  const { manual: _old, ...rest } = record;
  return Object.keys(others).length > 0 ? { ...rest, manual: others } : rest;
}
