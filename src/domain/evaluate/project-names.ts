import type { Compute } from '../compute/compute.ts';
import type { CompiledPolicies } from '../policy/compiled-policies.ts';
import type { ComputeRecord } from '../records/compute-record.ts';

/**
 * The record with the name that the compute's project has now. Where another name lets policies of a team select the compute that
 * did not before, it is marked since when (milliseconds since the epoch); a gate holds its changes for a while. Nothing is
 * remembered where no policy belongs to a team.
 */
export function withProjectName(
  record: ComputeRecord,
  compute: Compute,
  policies: CompiledPolicies,
  nowMs: number,
): ComputeRecord {
  const { projectName: from } = record;
  const { projectName: to } = compute;
  const isOfTeam = (index: number) => policies.set.policies[index]?.team !== undefined;
  if (from === to || compute.projectNameUnknown || !policies.set.policies.some(({ team }) => team !== undefined)) {
    return record;
  }
  const { renamed: _before, ...others } = record;
  const known = { ...others, projectName: to };
  if (from === undefined) return known;
  const before = policies.selecting({ ...compute, projectName: from });
  const added = policies.selecting(compute).filter((index) => isOfTeam(index) && !before.includes(index));
  if (added.length === 0) return known;
  const by = added.flatMap((index) => policies.set.policies[index]?.name ?? []);
  return { ...known, renamed: { from, atMs: nowMs, by } };
}
