import { isDeepStrictEqual } from 'node:util';
import { hasSettings } from '../../domain/compute/compute.ts';
import { type EvaluatedCompute, evaluateNow } from '../../domain/evaluate/evaluate.ts';
import { RECOVERY } from '../../domain/records/recovery-times.ts';
import type { Permit } from '../../ports/control-api.ts';
import { type EvaluateDeps, situationOf } from '../evaluate-project/evaluate.ts';
import { withBranches } from '../fleet/branches.ts';
import { type ReadProjectDeps, readProject } from '../fleet/cached-projects.ts';
import { type CachedProject, CONFIRMED_MS, FRESH_MS } from '../fleet/fleet.ts';

import { branchesOf, type ReadComputesDeps } from '../fleet/read-computes.ts';
import { READ_RETRY_MS } from '../leases/locked-project.ts';
import { type OutageDeps, reportApiError } from '../telemetry/outages.ts';
import { requestReconcile, type TriggerDeps, wakeAt } from '../triggers.ts';

/**
 * A reading of a sleeping compute is trusted for this long, in real milliseconds: any client may wake it. Where only its sleep allows a
 * change, an older reading costs one more GET of the project before the PATCH.
 */
const SLEEP_SERVES_MS = 1_000;

/** Reading under a lease that is no longer new must not use it up, in real milliseconds. */
const LATE_READ_DEADLINE_MS = 3_000;

export interface AsleepDeps extends EvaluateDeps, ReadProjectDeps, TriggerDeps {}

/**
 * Reads a compute again that {@link needsReading}. False if it has woken up, was changed, or can't be read; then it is reconciled again.
 */
export async function isStillAsleep(
  deps: AsleepDeps,
  { compute }: EvaluatedCompute,
  { signal, permit }: { signal: AbortSignal; permit?: Permit | undefined },
): Promise<boolean> {
  const { projectId, computeId } = compute;
  const { fleet, clock } = deps;
  const project = fleet.listed(projectId);
  const options = { signal, deadlineMs: LATE_READ_DEADLINE_MS, permit };
  const cachedProject = project && (await readProject(deps, project, options));
  signal.throwIfAborted();
  const now = cachedProject?.computes.find((one) => one.computeId === computeId);
  if (now?.state === 'idle' && now.pendingState === undefined && hasSettings(now, compute)) return true;
  if (cachedProject) await requestReconcile(deps, projectId);
  else await wakeAt(deps, projectId, clock.now() + READ_RETRY_MS);
  return false;
}

/**
 * True if only sleep allows the change, and the last reading of it is too old. Where many wait for the rate budget, a reading for each
 * would delay all of them: there it is used as long as the list of projects has shown no change.
 */
export function needsReading(deps: AsleepDeps, evaluatedCompute: EvaluatedCompute, isCrowded: boolean): boolean {
  const { projectId } = evaluatedCompute.compute;
  if (deps.fleet.ageMs(projectId) <= SLEEP_SERVES_MS) return false;
  if (isCrowded && deps.fleet.confirmedAgeMs(projectId) <= CONFIRMED_MS) return false;
  return needsSleep(deps, evaluatedCompute);
}

/** True if the same would not be written to the compute now were it awake. */
function needsSleep(deps: EvaluateDeps, { compute, record, plan }: EvaluatedCompute): boolean {
  if (compute.state !== 'idle') return false;
  const subject = { compute: { ...compute, state: 'active' }, record, projectBusy: false } as const;
  const awake = evaluateNow(situationOf(deps, subject)).plan;
  return awake.verdict !== 'act' || !isDeepStrictEqual(awake.actions[0]?.fields, plan.actions[0]?.fields);
}

export interface BranchDeps extends ReadComputesDeps, OutageDeps, TriggerDeps {}

/**
 * Before clients are disconnected by a policy that may select the compute by its branch, the branch is read again, unless that was just
 * done. If it has changed, or can't be read, nothing is sent: it is decided again.
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
  const options = { signal, deadlineMs: RECOVERY.readMs, branchesServeMs: FRESH_MS };
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
