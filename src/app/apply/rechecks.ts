import { isDeepStrictEqual } from 'node:util';
import { hasSettings } from '../../domain/compute/compute.ts';
import { type EvaluatedCompute, evaluateNow } from '../../domain/evaluate/evaluate.ts';
import { RECOVERY } from '../../domain/records/recovery-times.ts';
import type { Permit } from '../../ports/control-api.ts';
import { type EvaluateDeps, situationOf } from '../evaluate-project/evaluate.ts';
import { withBranches } from '../fleet/branches.ts';
import { type ReadProjectDeps, readProject } from '../fleet/cached-projects.ts';
import { type CachedProject, CONFIRMED_MS, FRESH_MS } from '../fleet/fleet.ts';
import { branchesOf } from '../fleet/read-computes.ts';
import { READ_RETRY_MS } from '../leases/locked-project.ts';
import { reportApiError } from '../telemetry/outages.ts';
import { requestReconcile, type TriggerDeps, tryAgain } from '../triggers.ts';

/**
 * How long a reading proves that a compute is asleep, in real milliseconds, since any client may wake the compute. If the reading is older, a
 * change that is allowed only during sleep costs one more GET before the PATCH.
 */
const ASLEEP_VALID_MS = 1_000;

/** The deadline of a reading just before a write, in real milliseconds: it must not use up the rest of the lease. */
const LATE_READ_DEADLINE_MS = 3_000;

export interface RecheckDeps extends EvaluateDeps, ReadProjectDeps, TriggerDeps {}

/** Reads the compute again. If it is awake, was changed, or can't be read, returns false and schedules another reconcile. */
export async function isStillAsleep(
  deps: RecheckDeps,
  { compute }: EvaluatedCompute,
  { signal, permit }: { signal: AbortSignal; permit?: Permit | undefined },
): Promise<boolean> {
  const { projectId, computeId } = compute;
  const { fleet } = deps;
  const project = fleet.listed(projectId);
  const options = { signal, deadlineMs: LATE_READ_DEADLINE_MS, permit };
  const cachedProject = project && (await readProject(deps, project, options));
  signal.throwIfAborted();
  const now = cachedProject?.computes.find((one) => one.computeId === computeId);
  if (now?.state === 'idle' && now.pendingState === undefined && hasSettings(now, compute)) return true;
  if (cachedProject) await requestReconcile(deps, projectId);
  else await tryAgain(deps, projectId, READ_RETRY_MS);
  return false;
}

/**
 * Returns true if the change is allowed only during sleep, and the last reading is too old to prove sleep, or was made by another process. If
 * many projects share the boundary (`isCrowded`), more readings would delay them all: then a recent list that shows no change is enough.
 */
export function needsReading(deps: RecheckDeps, evaluatedCompute: EvaluatedCompute, isCrowded: boolean): boolean {
  const { projectId } = evaluatedCompute.compute;
  const isShared = deps.fleet.cachedProject(projectId)?.isShared === true;
  if (!isShared && deps.fleet.ageMs(projectId) <= ASLEEP_VALID_MS) return false;
  if (isCrowded && deps.fleet.confirmedAgeMs(projectId) <= CONFIRMED_MS) return false;
  return dependsOnSleep(deps, evaluatedCompute);
}

/** Returns true if the change would not be written now if the compute were awake. */
function dependsOnSleep(deps: EvaluateDeps, { compute, record, plan }: EvaluatedCompute): boolean {
  if (compute.state !== 'idle') return false;
  const subject = { compute: { ...compute, state: 'active' }, record, projectBusy: false } as const;
  const awake = evaluateNow(situationOf(deps, subject)).plan;
  return awake.verdict !== 'act' || !isDeepStrictEqual(awake.actions[0]?.fields, plan.actions[0]?.fields);
}

/**
 * Reads the branch of the compute again before a change that disconnects clients, if policies select by branch and the last reading is not
 * recent. If the branch has changed or can't be read, returns false and schedules another reconcile.
 */
export async function isBranchAsDecided(
  deps: ReadProjectDeps & TriggerDeps,
  cachedProject: CachedProject,
  { compute, plan }: EvaluatedCompute,
  signal: AbortSignal,
): Promise<boolean> {
  const mayDependOnBranch = deps.rules.current.policies.selectsByBranch && compute.branchName !== undefined;
  if (!mayDependOnBranch || !plan.actions[0]?.disconnects) return true;
  const { fleet } = deps;
  const { project } = cachedProject;
  const options = { signal, deadlineMs: RECOVERY.readMs, branchesMaxAgeMs: FRESH_MS };
  const branches = await branchesOf(deps, project, [compute], options);
  if (!branches.ok) {
    if (!signal.aborted) reportApiError(deps, project, branches.error, 'branches');
    await tryAgain(deps, project.projectId, READ_RETRY_MS);
    return false;
  }
  deps.outages.projectAnswers(project, 'branches');
  const [now] = withBranches([compute], branches.value);
  if (now?.branchName === compute.branchName && String(now?.branchRoles) === String(compute.branchRoles)) return true;
  fleet.cache({ ...cachedProject, computes: withBranches(cachedProject.computes, branches.value) });
  await requestReconcile(deps, project.projectId);
  return false;
}
