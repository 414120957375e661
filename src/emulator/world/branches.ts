import { removeCompute } from './compute-commands.ts';
import { addCompute, additionRefusal, type NewComputeRequest } from './create-compute.ts';
import type { Branch, Operation, Project, WorldState } from './entities.ts';
import { startProjectOperation, touch } from './operations.ts';
import { LOCKED_MESSAGE, type Outcome, type Refused, refuse } from './outcome.ts';
import { nextName } from './random.ts';
import { projectLedger } from './usage.ts';

export interface NewBranch {
  name?: string | undefined;
  parentId?: string | undefined;
  protected: boolean;
  /** At most one of the computes is read-write. */
  computes: readonly Omit<NewComputeRequest, 'branchId'>[];
}

export function defaultBranch(project: Project): Branch | undefined {
  return [...project.branches.values()].find((branch) => branch.default);
}

export function addBranch(
  world: WorldState,
  project: Project,
  wanted: Omit<NewBranch, 'computes'> & { default: boolean },
): Branch {
  const id = `br-${nextName(world.random)}`;
  const branch: Branch = {
    id,
    projectId: project.id,
    name: wanted.name ?? id,
    default: wanted.default,
    protected: wanted.protected,
    parentId: wanted.parentId,
    createdAtMs: world.nowMs,
    updatedAtMs: world.nowMs,
  };
  project.branches.set(id, branch);
  return branch;
}

function branchRefusal(project: Project, wanted: NewBranch): Refused | undefined {
  if (wanted.parentId !== undefined && !project.branches.has(wanted.parentId)) {
    return refuse('not_found', 'parent branch not found');
  }
  if ([...project.branches.values()].some(({ name }) => name === wanted.name)) {
    return refuse('conflict', 'branch with the provided name already exists');
  }
  const primaries = wanted.computes.filter(({ type }) => type === 'read_write');
  if (primaries.length > 1) return refuse('conflict', 'read-write endpoint already exists');
  const parentId = wanted.parentId ?? defaultBranch(project)?.id ?? '';
  // Checked as replicas of the parent, since the new branch does not exist yet.
  const replicas = wanted.computes.map((compute) => ({ ...compute, type: 'read_only' as const, branchId: parentId }));
  return replicas.map((replica) => additionRefusal(project, replica)).find((refused) => refused !== undefined);
}

/** Creates a branch with computes, which start once it exists. */
export function createBranch(world: WorldState, project: Project, wanted: NewBranch): Outcome {
  const refused = branchRefusal(project, wanted);
  if (refused) return refused;
  if (project.openOperations > 0) return refuse('locked', LOCKED_MESSAGE);
  const parentId = wanted.parentId ?? defaultBranch(project)?.id;
  const branch = addBranch(world, project, { ...wanted, parentId, default: false });
  const operations: Operation[] = [];
  if (wanted.computes.length === 0) operations.push(startProjectOperation(world, project, branch.id, 'create_branch'));
  wanted.computes.forEach((compute, index) => {
    const before = index === 0 ? (['create_branch'] as const) : [];
    operations.push(...addCompute(world, project, { ...compute, branchId: branch.id }, before).operations);
  });
  return { ok: true, branch, operations };
}

export function renameBranch(world: WorldState, project: Project, branchId: string, name: string): Outcome {
  const branch = project.branches.get(branchId);
  if (branch === undefined) return refuse('not_found', 'branch not found');
  const isTaken = [...project.branches.values()].some((other) => other.name === name && other.id !== branchId);
  if (isTaken) return refuse('conflict', `a branch is called ${name} already`);
  branch.name = name;
  branch.updatedAtMs = world.nowMs;
  return { ok: true, branch, operations: [] };
}

/** Deletes a branch and its computes at once, unless it is the default branch or has children. */
export function deleteBranch(world: WorldState, project: Project, branchId: string): Outcome {
  const branch = project.branches.get(branchId);
  if (branch === undefined) return refuse('not_found', 'branch not found');
  if (branch.default) return refuse('conflict', 'the default branch cannot be deleted');
  if ([...project.branches.values()].some(({ parentId }) => parentId === branchId)) {
    return refuse('conflict', 'a branch with children cannot be deleted');
  }
  if (project.openOperations > 0) return refuse('locked', LOCKED_MESSAGE);
  for (const compute of [...project.computes.values()]) {
    if (compute.branchId === branchId) removeCompute(world, project, compute);
  }
  project.branches.delete(branchId);
  const ledger = projectLedger(world, project).branches.get(branchId);
  if (ledger !== undefined) ledger.deletedAtMs = world.nowMs;
  touch(world, project);
  return { ok: true, branch, operations: [] };
}
