import type { Compute } from '../domain/compute.ts';
import type { ApiResult, CallOptions, Project } from '../ports/control-api.ts';
import type { Context } from './context.ts';

/** The computes of a project, with the names of their branches where a policy selects by them: that costs one request more. */
export async function readComputes(
  context: Context,
  project: Project,
  options: CallOptions,
): Promise<ApiResult<Compute[]>> {
  const answer = await context.api.listComputes(project, options);
  if (!answer.ok || !context.policies.selectsByBranch) return answer;
  const names = await branchNames(context, project.projectId, answer.value, options);
  return { ok: true, value: answer.value.map((compute) => withBranchName(compute, names.get(compute.branchId))) };
}

function withBranchName(compute: Compute, branchName: string | undefined): Compute {
  return branchName === undefined ? compute : { ...compute, branchName };
}

/** Names are read again only when a compute is on a branch that is not known yet, and never from a route that was refused. */
async function branchNames(
  context: Context,
  projectId: string,
  computes: readonly Compute[],
  options: CallOptions,
): Promise<ReadonlyMap<string, string>> {
  const known = context.fleet.branchNames.get(projectId);
  if (known && (known.size === 0 || computes.every(({ branchId }) => known.has(branchId)))) return known;
  const names = new Map<string, string>();
  for await (const page of context.api.listBranches(projectId, options)) {
    if (page.ok) for (const { branchId, name } of page.value) names.set(branchId, name);
    else if (page.error.code !== 'forbidden' && page.error.code !== 'not_found') return known ?? names;
    else sayNamesAreRefused(context, projectId, page.error.message);
  }
  context.fleet.branchNames.set(projectId, names);
  return names;
}

function sayNamesAreRefused({ telemetry }: Context, projectId: string, message: string): void {
  telemetry.log.warn(
    { event: 'ebb.branch_names_refused', project: projectId },
    `the key may not list the branches of ${projectId} (${message}): policies that select branches by name don't match there`,
  );
}
