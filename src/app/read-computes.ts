import type { Compute } from '../domain/compute.ts';
import type { ApiResult, CallOptions, Project } from '../ports/control-api.ts';
import { type Branches, readBranches, refusesBranches, withBranches } from './branches.ts';
import type { Context } from './context.ts';

/** Names and roles of branches are rarely changed; a picture of them serves so long, in real milliseconds. */
const BRANCHES_SERVE_MS = 3_600_000;

/**
 * The computes of a project, with the names and roles of their branches where a policy selects by them: that costs one request
 * more, now and then.
 */
export async function readComputes(
  context: Context,
  project: Project,
  options: CallOptions,
): Promise<ApiResult<Compute[]>> {
  const answer = await context.api.listComputes(project, options);
  if (!answer.ok || !context.policies.selectsByBranch) return answer;
  const branches = await branchesOf(context, project.projectId, answer.value, options);
  return { ok: true, value: withBranches(answer.value, branches) };
}

/**
 * Branches are read again when a compute is on one that is not known yet, and after a while. Where that is refused there are
 * none, also for a while.
 */
async function branchesOf(
  context: Context,
  projectId: string,
  computes: readonly Compute[],
  options: CallOptions,
): Promise<Branches> {
  const known = context.fleet.branches.get(projectId);
  const nowMs = context.clock.monotonicMs();
  const isRefused = known?.branches.size === 0;
  if (known && nowMs - known.readAtMonotonicMs < BRANCHES_SERVE_MS) {
    if (isRefused || computes.every(({ branchId }) => known.branches.has(branchId))) return known.branches;
  }
  const answer = await readBranches(context.api, projectId, options);
  if (!answer.ok && !refusesBranches(answer.error)) return known?.branches ?? new Map();
  if (!answer.ok && !isRefused) sayBranchesAreRefused(context, projectId, answer.error.message);
  const branches = answer.ok ? answer.value : new Map();
  context.fleet.branches.set(projectId, { branches, readAtMonotonicMs: nowMs });
  return branches;
}

function sayBranchesAreRefused({ telemetry }: Context, projectId: string, message: string): void {
  telemetry.log.warn(
    { event: 'ebb.branch_names_refused', project: projectId },
    `the key may not list the branches of ${projectId} (${message}): policies that select branches by name or role don't match there`,
  );
}
