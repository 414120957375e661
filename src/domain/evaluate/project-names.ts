import type { Compute } from '../compute/compute.ts';
import { nextBoundary } from '../decide/boundaries.ts';
import { renamedUntil } from '../plan/gates/disruption.ts';
import type { CompiledPolicies } from '../policy/compiled-policies.ts';
import { type ComputeRecord, decidingFacts } from '../records/compute-record.ts';

/**
 * Returns the record with the project's current name. If the new name makes further team policies select the compute, the record is
 * marked as renamed, and a gate holds its changes for a while. During that time another new name is still compared with the name
 * before the mark. The name is only stored where policies belong to teams.
 */
export function withProjectName(
  record: ComputeRecord,
  compute: Compute,
  policies: CompiledPolicies,
  nowMs: number,
): ComputeRecord {
  const { projectName: lastName } = record;
  const { projectName: currentName } = compute;
  const isOfTeam = (index: number) => policies.set.policies[index]?.team !== undefined;
  if (
    lastName === currentName ||
    compute.projectNameUnknown ||
    !policies.set.policies.some(({ team }) => team !== undefined)
  ) {
    return record;
  }
  const { renamed, ...others } = record;
  const renamedRecord = { ...others, projectName: currentName };
  if (lastName === undefined) return renamedRecord;
  const input = { policies, compute, ...decidingFacts(record) };
  const isHeld = renamed && renamedUntil(renamed.atMs, (afterMs) => nextBoundary(input, afterMs)) > nowMs;
  const earlierName = isHeld ? renamed.from : lastName;
  const selectedBefore = policies.selecting({ ...compute, projectName: earlierName });
  const added = policies.selecting(compute).filter((index) => isOfTeam(index) && !selectedBefore.includes(index));
  if (added.length === 0) return renamedRecord;
  const by = added.flatMap((index) => policies.set.policies[index]?.name ?? []);
  const isKnown = isHeld && by.every((name) => renamed.by.includes(name));
  return { ...renamedRecord, renamed: { from: earlierName, atMs: isKnown ? renamed.atMs : nowMs, by } };
}
