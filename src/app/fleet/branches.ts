import { firstNames } from '../../common/names.ts';
import type { BranchRole, Compute } from '../../domain/compute/compute.ts';
import type { ApiResult, Branch, CallOptions, ControlApi, ControlApiError } from '../../ports/control-api.ts';

/** The names and roles of a project's branches, by id: policies select by them. */
export type Branches = ReadonlyMap<string, { name: string; roles: readonly BranchRole[] }>;

export interface ListedBranches {
  branches: Branches;
  /** Since when the key may not list branches (`branches` is empty then), in monotonic time; absent while it may. */
  refusedSinceMonotonicMs?: number;
  /** The project's `updated_at` when its branches were read, milliseconds since the epoch. */
  projectUpdatedAtMs: number;
  /** When the branches were read, in monotonic time. */
  readAtMonotonicMs: number;
}

/** Reads all branches of a project: one request, more where there are thousands. */
export async function readBranches(
  api: Pick<ControlApi, 'listBranches'>,
  projectId: string,
  options: CallOptions,
): Promise<ApiResult<Branches>> {
  const branches = new Map<string, { name: string; roles: readonly BranchRole[] }>();
  for await (const page of api.listBranches(projectId, options)) {
    if (!page.ok) return page;
    for (const branch of page.value) branches.set(branch.branchId, { name: branch.name, roles: rolesOf(branch) });
  }
  return { ok: true, value: branches };
}

/** Returns true if the key may not list branches, though it may read computes. */
export function refusesBranches({ code }: ControlApiError): boolean {
  return code === 'forbidden' || code === 'not_found';
}

/** Returns a note for people about projects whose branches the key may not list; none if there are no such projects. */
export function refusedBranchNotes(projects: readonly string[]): string[] {
  return projects.length === 0 ? [] : [describeRefusal(firstNames(projects))];
}

/** Describes what follows for policies if the key may not list the branches of these projects. */
export function describeRefusal(projects: string): string {
  return `the key may not list the branches of ${projects}: policies that select by name or role of a branch do not apply there, except freezes`;
}

/** Returns true for an error that concerns only the list of branches. */
export function isAboutBranches({ route }: ControlApiError): boolean {
  return route.endsWith('/branches');
}

export function withBranches(computes: readonly Compute[], branches: Branches): Compute[] {
  return computes.map((compute) => {
    const branch = branches.get(compute.branchId);
    return branch ? { ...compute, branchName: branch.name, branchRoles: branch.roles } : compute;
  });
}

function rolesOf({ isDefault, isProtected, parentBranchId }: Branch): BranchRole[] {
  const roles: BranchRole[] = [];
  if (isDefault) roles.push('default');
  if (isProtected) roles.push('protected');
  if (parentBranchId !== undefined) roles.push('child');
  return roles;
}
