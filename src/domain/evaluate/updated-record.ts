import type { Compute, FieldGroup } from '../compute/compute.ts';
import { nextBoundary } from '../decide/boundaries.ts';
import { withoutRestoredFields } from '../overrides/restore.ts';
import { renamedUntil } from '../plan/gates/disruption.ts';
import { detectManualChanges } from '../plan/manual-changes.ts';
import type { CompiledPolicies } from '../policy/compiled-policies.ts';
import { type ComputeRecord, decidingFacts } from '../records/compute-record.ts';
import { withLateEffects, withoutResolvedFailures } from '../records/failures.ts';
import { withLag } from '../records/lag.ts';
import { isReverted, type Situation } from './evaluate.ts';
import { withTrials } from './trials.ts';

interface RecordSituation extends Pick<Situation, 'policies' | 'holds' | 'manualChanges'> {
  /** Milliseconds since the epoch. */
  nowMs: number;
  /** The start of the reading that shows the compute; absent: now. */
  readAtMs?: number;
  /** The start of enforcement, for a record without it; absent where ebb only observes. Milliseconds since the epoch. */
  enforcedSinceMs?: number;
}

/**
 * Updates a record, whose pending write is already confirmed, from its compute and the policies. Daemons and plans base their decisions on the
 * result. Returns the same record if nothing has changed.
 */
export function updatedRecord(confirmed: ComputeRecord, compute: Compute, situation: RecordSituation): ComputeRecord {
  const { policies, nowMs, readAtMs = nowMs, enforcedSinceMs } = situation;
  const resolved = withoutResolvedFailures(withLateEffects(confirmed, compute, { nowMs, readAtMs }), compute);
  const restored = withoutRestoredFields(withLag(resolved, compute, readAtMs), compute);
  let record = withProjectName(restored, compute, policies, nowMs);
  if (enforcedSinceMs !== undefined) {
    if (record.enforcedSinceMs === undefined) record = { ...record, enforcedSinceMs };
    record = withTrials(policies, compute, record, nowMs);
  }
  const willBeReverted = (group: FieldGroup) => isReverted({ ...situation, compute, record }, group);
  return detectManualChanges(record, compute, { nowMs, readAtMs }, willBeReverted);
}

/**
 * Returns the record with the project's current name, which is only stored where policies belong to teams. If the new name makes more
 * team policies select the compute, the record is marked as renamed, and a gate delays its changes for a while. If the project is
 * renamed again in that time, the new name is compared with the one before the first rename.
 */
export function withProjectName(
  record: ComputeRecord,
  compute: Compute,
  policies: CompiledPolicies,
  nowMs: number,
): ComputeRecord {
  const { projectName: lastName } = record;
  const { projectName: currentName } = compute;
  if (lastName === currentName || compute.projectNameUnknown) return record;
  if (!policies.set.policies.some(({ team }) => team !== undefined)) return record;
  const { renamed, ...others } = record;
  const renamedRecord = { ...others, projectName: currentName };
  if (lastName === undefined) return renamedRecord;
  const input = { policies, compute, ...decidingFacts(record) };
  const isMarkActive = renamed && renamedUntil(renamed.atMs, (afterMs) => nextBoundary(input, afterMs)) > nowMs;
  const earlierName = isMarkActive ? renamed.from : lastName;
  const selectedBefore = policies.selecting({ ...compute, projectName: earlierName });
  const added = policies.selecting(compute).filter((index) => !selectedBefore.includes(index));
  const addedPolicies = added.flatMap((index) => policies.set.policies[index] ?? []);
  const by = addedPolicies.filter(({ team }) => team !== undefined).map(({ name }) => name);
  if (by.length === 0) return renamedRecord;
  const isAlreadyMarked = isMarkActive && by.every((name) => renamed.by.includes(name));
  return { ...renamedRecord, renamed: { from: earlierName, atMs: isAlreadyMarked ? renamed.atMs : nowMs, by } };
}
