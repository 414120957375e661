import type { EvaluatedCompute } from '../../domain/evaluate/evaluate.ts';
import { withBranches } from '../fleet/branches.ts';
import type { CachedProject } from '../fleet/fleet.ts';
import { FRESH_MS } from '../fleet/fleet.ts';
import { branchesOf, type ReadComputesDeps } from '../fleet/read-computes.ts';
import { READ_DEADLINE_MS, READ_RETRY_MS } from '../leases/locked-project.ts';
import { type OutageDeps, reportApiError } from '../telemetry/outages.ts';
import { requestReconcile, type TriggerDeps, wakeAt } from '../triggers.ts';

export interface BranchDeps extends ReadComputesDeps, OutageDeps, TriggerDeps {}

/**
 * Before clients are disconnected by a policy that may have chosen the compute by its branch, the branch is read again, unless that
 * was a moment ago. Where it is another by now, or can't be had, nothing is sent: it is decided again.
 */
export async function isBranchAsDecided(
  deps: BranchDeps,
  cachedProject: CachedProject,
  { compute, plan }: EvaluatedCompute,
  signal: AbortSignal,
): Promise<boolean> {
  const mayDependOn = deps.rules.current.policies.selectsByBranch && compute.branchName !== undefined;
  if (!mayDependOn || !plan.actions[0]?.disconnects) return true;
  const { fleet, clock } = deps;
  const { project } = cachedProject;
  const options = { signal, deadlineMs: READ_DEADLINE_MS, branchesServeMs: FRESH_MS };
  const branches = await branchesOf(deps, project, [compute], options);
  if (!branches.ok) {
    if (!signal.aborted) reportApiError(deps, project.projectId, branches.error);
    await wakeAt(deps, project.projectId, clock.now() + READ_RETRY_MS);
    return false;
  }
  const [now] = withBranches([compute], branches.value);
  if (now?.branchName === compute.branchName && String(now?.branchRoles) === String(compute.branchRoles)) return true;
  fleet.see({ ...cachedProject, computes: withBranches(cachedProject.computes, branches.value) });
  await requestReconcile(deps, project.projectId);
  return false;
}
