import type { Plan } from './accounts.ts';
import { addBranch } from './branches.ts';
import { removeCompute } from './compute-commands.ts';
import { addCompute, additionRefusal } from './create-compute.ts';
import type { ComputeSettings, Project, WorldState } from './entities.ts';
import { touch } from './operations.ts';
import { LOCKED_MESSAGE, type Outcome, refuse } from './outcome.ts';
import { nextName } from './random.ts';
import { projectLedger } from './usage.ts';

export interface NewProject {
  name?: string | undefined;
  orgId?: string | undefined;
  regionId?: string | undefined;
  pgVersion?: number | undefined;
  branchName?: string | undefined;
  settings: Partial<ComputeSettings>;
}

const DEFAULT_REGION = 'aws-us-east-2';
const DEFAULT_PG_VERSION = 17;

/** A project without branches and computes. */
export function projectRecord(
  wanted: Pick<Project, 'id' | 'name' | 'regionId' | 'pgVersion' | 'plan' | 'createdAtMs' | 'orgId'>,
): Project {
  return {
    ...wanted,
    updatedAtMs: wanted.createdAtMs,
    branches: new Map(),
    computes: new Map(),
    operations: [],
    openOperations: 0,
    deletedUsage: { activeMs: 0, cuMs: 0, lastActiveAtMs: undefined },
  };
}

function insertSorted(ids: string[], id: string): void {
  const index = ids.findIndex((other) => other > id);
  ids.splice(index < 0 ? ids.length : index, 0, id);
}

/** A new project comes with a default branch and a primary compute on it. */
export function createProject(world: WorldState, wanted: NewProject): Outcome {
  const id = nextName(world.random);
  const project = projectRecord({
    id,
    name: wanted.name ?? id,
    regionId: wanted.regionId ?? DEFAULT_REGION,
    pgVersion: wanted.pgVersion ?? DEFAULT_PG_VERSION,
    plan: world.plan,
    createdAtMs: world.nowMs,
    orgId: wanted.orgId,
  });
  const branch = addBranch(world, project, { name: wanted.branchName ?? 'main', default: true, protected: false });
  const request = { branchId: branch.id, type: 'read_write' as const, settings: wanted.settings };
  const refused = additionRefusal(project, request);
  if (refused) return refused;
  world.projects.set(id, project);
  insertSorted(world.projectIds, id);
  return { ok: true, project, branch, ...addCompute(world, project, request, ['create_timeline']) };
}

export function deleteProject(world: WorldState, project: Project): Outcome {
  if (project.openOperations > 0) return refuse('locked', LOCKED_MESSAGE);
  for (const compute of [...project.computes.values()]) removeCompute(world, project, compute);
  projectLedger(world, project).deletedAtMs = world.nowMs;
  world.projects.delete(project.id);
  world.projectIds.splice(world.projectIds.indexOf(project.id), 1);
  return { ok: true, project, operations: [] };
}

export function renameProject(world: WorldState, project: Project, name: string): Outcome {
  project.name = name;
  touch(world, project);
  return { ok: true, project, operations: [] };
}

/** Moves a project to another organization, or out of all. Keys of the old organization for this project stop working. */
export function moveProject(world: WorldState, project: Project, orgId: string | undefined): Outcome {
  if (orgId !== undefined && !world.accounts.organizations.has(orgId))
    return refuse('not_found', 'organization not found');
  project.orgId = orgId;
  projectLedger(world, project).orgId = orgId;
  return { ok: true, project, operations: [] };
}

/** Changes the plan of every project of an organization; without one, of all projects. */
export function changePlan(world: WorldState, plan: Plan, orgId: string | undefined): Outcome {
  if (orgId !== undefined && !world.accounts.organizations.has(orgId))
    return refuse('not_found', 'organization not found');
  for (const project of world.projects.values()) {
    if (orgId !== undefined && project.orgId !== orgId) continue;
    project.plan = plan;
    projectLedger(world, project).plans.push({ fromMs: world.nowMs, plan });
  }
  return { ok: true, operations: [] };
}
