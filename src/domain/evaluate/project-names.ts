import type { Compute } from '../compute/compute.ts';
import { nextBoundary } from '../decide/boundaries.ts';
import { renamedUntil } from '../plan/gates/disruption.ts';
import type { CompiledPolicies } from '../policy/compiled-policies.ts';
import type { ComputeRecord } from '../records/compute-record.ts';

/**
 * The record with the name that the compute's project has now. Where another name lets policies of a team select the compute that
 * did not before, it is marked since when (milliseconds since the epoch); a gate holds its changes for a while. While they are
 * held, a further name is compared with the one before the mark. Nothing is remembered where no policy belongs to a team.
 */
export function withProjectName(
  record: ComputeRecord,
  compute: Compute,
  policies: CompiledPolicies,
  nowMs: number,
): ComputeRecord {
  const { projectName: last } = record;
  const { projectName: to } = compute;
  const isOfTeam = (index: number) => policies.set.policies[index]?.team !== undefined;
  if (last === to || compute.projectNameUnknown || !policies.set.policies.some(({ team }) => team !== undefined)) {
    return record;
  }
  const { renamed, ...others } = record;
  const known = { ...others, projectName: to };
  if (last === undefined) return known;
  const input = { policies, compute, baseline: record.baseline, trials: record.trials };
  const isHeld = renamed && renamedUntil(renamed.atMs, (afterMs) => nextBoundary(input, afterMs)) > nowMs;
  const from = isHeld ? renamed.from : last;
  const before = policies.selecting({ ...compute, projectName: from });
  const added = policies.selecting(compute).filter((index) => isOfTeam(index) && !before.includes(index));
  if (added.length === 0) return known;
  const by = added.flatMap((index) => policies.set.policies[index]?.name ?? []);
  const isKnown = isHeld && by.every((name) => renamed.by.includes(name));
  return { ...known, renamed: { from, atMs: isKnown ? renamed.atMs : nowMs, by } };
}
