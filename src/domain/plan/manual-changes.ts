/** Detects manual changes: a value other than the last that ebb applied was set by a person. Instants are milliseconds since the epoch. */

import {
  type Compute,
  type ComputeSettings,
  FIELD_GROUPS,
  type FieldGroup,
  fieldsOf,
  hasSettings,
  isRaise,
  type Size,
  settingOf,
  valueOfGroup,
  wantedFields,
} from '../compute/compute.ts';
import type { Decision } from '../decide/decide.ts';
import { describeValue } from '../decide/trace.ts';
import type { Hold } from '../overrides/holds.ts';
import { restoreFields } from '../overrides/restore.ts';
import type { ManualChanges } from '../policy/disruption.ts';
import { notLoadedAmong } from '../policy/team-parts.ts';
import type { ComputeRecord, ManualMark } from '../records/compute-record.ts';
import { HOUR_MS } from '../time/units.ts';
import { hasOperationRunning } from './gates/earlier-writes.ts';

/** A manually set value becomes the baseline once a reading that begins this long after the first one shows it too. */
export const BASELINE_CONFIRMED_MS = 30_000;

/** A manual change is respected for at most this long if no boundary is earlier. */
const LONGEST_RESPECT_MS = 24 * HOUR_MS;

/** A manual raise is respected for at least this long: somebody needed it. */
const SHORTEST_RAISE_RESPECT_MS = 12 * HOUR_MS;

/**
 * Returns the record with new manual changes marked, and without marks of values that are gone. Detects nothing while a change by ebb or an
 * operation is running, nor in lagging fields. Unless it will be reverted, a manual change becomes the baseline once a reading that begins 30 s
 * later shows it too.
 */
export function detectManualChanges(
  record: ComputeRecord,
  compute: Compute,
  { nowMs, readAtMs }: { nowMs: number; readAtMs: number },
  isReverted: (group: FieldGroup) => boolean,
): ComputeRecord {
  if (record.intent || hasOperationRunning(compute, record)) return record;
  let updated = record;
  for (const group of FIELD_GROUPS) {
    const applied = fieldsOf(group, record.lastApplied);
    // Before ebb's first change of a field, its present value is the baseline, unless a restore is requested.
    if (!applied && !restoreFields(updated).includes(group)) updated = withBaseline(updated, group, compute, readAtMs);
    // A failed operation leaves the earlier values, which looks like a manual change but is none.
    if (!applied || record.failures?.[group] || record.lagging?.[group]) continue;
    updated = confirmBaseline(updated, group, compute, readAtMs);
    if (hasSettings(compute, applied)) updated = withoutMark(updated, group);
    else updated = withDetected(updated, group, compute, { nowMs, readAtMs, isReverted: isReverted(group) });
  }
  return updated;
}

function withDetected(
  record: ComputeRecord,
  group: FieldGroup,
  compute: Compute,
  { nowMs, readAtMs, isReverted }: { nowMs: number; readAtMs: number; isReverted: boolean },
): ComputeRecord {
  const fields = fieldsOf(group, compute) ?? {};
  const { updatedAtMs } = compute;
  const before = record.manual?.[group];
  if (before && hasSettings(compute, before.fields)) {
    if (updatedAtMs === undefined || updatedAtMs <= (before.updatedAtMs ?? 0)) return record;
    // The mark keeps the newest date, so that an older reading does not end it.
    return { ...record, manual: { ...record.manual, [group]: { ...before, updatedAtMs } } };
  }
  const raises = group === 'size' && isRaise(record.lastApplied as Size, compute);
  const mark = { fields, seenAtMs: nowMs, raises, ...(updatedAtMs && { updatedAtMs }) };
  const marked = { ...record, manual: { ...record.manual, [group]: mark } };
  if (isReverted || hasSettings(record.baseline, fields)) return marked;
  // One reading may be wrong, so a later one must confirm the baseline.
  return { ...marked, baselineCandidates: { ...record.baselineCandidates, [group]: { fields, readAtMs } } };
}

/**
 * Records present values that policies want as applied by ebb, whoever set them. Excludes values that are kept only because connection counts are
 * missing, since no policy wants them. Changes nothing while the policies of the compute's team are not loaded.
 */
export function withAgreed(record: ComputeRecord, compute: Compute, decision: Decision): ComputeRecord {
  if (notLoadedAmong(decision.freezes)) return record;
  return FIELD_GROUPS.reduce((after, group) => {
    const fields = wantedFields(group, decision.enforced);
    if (!fields || !hasSettings(compute, fields) || record.lagging?.[group]) return after;
    const code = decision.enforcedDeciders[group]?.code;
    if (code === 'stabilising' || code === 'connections_unknown') return after;
    const isNew = !hasSettings({ ...compute, ...after.lastApplied }, fields) || !fieldsOf(group, after.lastApplied);
    const unmarked = withoutMark(after, group);
    return isNew ? { ...unmarked, lastApplied: { ...after.lastApplied, ...fields } } : unmarked;
  }, record);
}

/** The instants until which the manual changes of fields are respected, milliseconds since the epoch. */
export type Respected = Partial<Record<FieldGroup, number>>;

/** The instant until which a manual change is respected; `nextBoundaryAfter` finds boundaries of its field. */
export function respectedUntil(
  { seenAtMs, raises }: ManualMark,
  rule: ManualChanges,
  nextBoundaryAfter: (afterMs: number) => number | undefined,
): number {
  if (rule.kind === 'revert') return seenAtMs;
  if (rule.kind === 'respect-for') return seenAtMs + rule.forMs;
  const boundaryMs = Math.min(nextBoundaryAfter(seenAtMs) ?? Number.POSITIVE_INFINITY, seenAtMs + LONGEST_RESPECT_MS);
  return raises ? Math.max(boundaryMs, seenAtMs + SHORTEST_RAISE_RESPECT_MS) : boundaryMs;
}

/** The name of a group's field in policies. */
export function fieldNameOf(group: FieldGroup): string {
  return group === 'size' ? 'size' : 'suspend_after';
}

/** The fields that a hold sets, and that a person has changed since. The manual change is newer, so the hold does not change it back. */
export function changedSinceHold(hold: Hold, { manual }: Pick<ComputeRecord, 'manual'>): FieldGroup[] {
  return FIELD_GROUPS.filter((group) => {
    const { seenAtMs = 0 } = manual?.[group] ?? {};
    return valueOfGroup(group, hold) !== undefined && seenAtMs > hold.createdAtMs;
  });
}

/** Describes a manual change, with the value that ebb had applied. */
export function describeManualChange(
  group: FieldGroup,
  applied: Partial<ComputeSettings>,
  fields: Partial<ComputeSettings>,
): string {
  return `${fieldNameOf(group)} changed by a person: ${describeFields(group, applied)} → ${describeFields(group, fields)}`;
}

/** The size or timeout as policies write it; `?` if the settings lack it. */
export function describeFields(group: FieldGroup, settings: Partial<ComputeSettings>): string {
  const fields = fieldsOf(group, settings);
  return fields ? describeValue(settingOf(group, fields as ComputeSettings)) : '?';
}

/** Returns the record with the present values as baseline; the same record if they already are. */
function withBaseline(record: ComputeRecord, group: FieldGroup, compute: Compute, seenAtMs: number): ComputeRecord {
  const fields = fieldsOf(group, compute) ?? {};
  if (hasSettings(record.baseline, fields)) return record;
  const change = { seenAtMs, before: fieldsOf(group, record.baseline) ?? {} };
  return {
    ...record,
    baseline: { ...record.baseline, ...fields },
    baselineChanges: { ...record.baselineChanges, [group]: change },
  };
}

/** Confirms or drops a baseline candidate. Returns the same record until a reading is late enough to confirm it. */
function confirmBaseline(record: ComputeRecord, group: FieldGroup, compute: Compute, readAtMs: number): ComputeRecord {
  const { [group]: candidate, ...others } = record.baselineCandidates ?? {};
  if (!candidate) return record;
  const isShown = hasSettings(compute, candidate.fields);
  if (isShown && readAtMs - candidate.readAtMs < BASELINE_CONFIRMED_MS) return record;
  const { baselineCandidates: _before, ...rest } = record;
  const withoutCandidate = Object.keys(others).length > 0 ? { ...rest, baselineCandidates: others } : rest;
  return isShown ? withBaseline(withoutCandidate, group, compute, candidate.readAtMs) : withoutCandidate;
}

export function withoutMark(record: ComputeRecord, group: FieldGroup): ComputeRecord {
  if (!record.manual?.[group]) return record;
  const { [group]: _gone, ...others } = record.manual;
  const { manual: _old, ...rest } = record;
  return Object.keys(others).length > 0 ? { ...rest, manual: others } : rest;
}
