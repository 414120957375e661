import type { Fleet, FleetCompute, FleetProject } from '../fleet.ts';
import { createDueIndex } from './due-index.ts';
import type { Branch, Compute, Project, WorldState } from './entities.ts';
import { createRandom } from './random.ts';
import { planSuspension, suspensionDueAtMs } from './suspension.ts';
import { noUsage } from './usage.ts';

const YEAR_MS = 365 * 86_400_000;

interface WorldOptions {
  fleet: Fleet;
  seed: number;
  startMs: number;
  operationTimeMs?: number;
}

function createCompute(world: WorldState, project: Project, wanted: FleetCompute): Compute {
  const createdAtMs = wanted.createdAtMs ?? project.createdAtMs;
  const isActive = wanted.state === 'active';
  const lastActiveAtMs = wanted.lastActiveAtMs ?? (isActive ? world.nowMs : undefined);
  const compute: Compute = {
    id: wanted.id,
    projectId: project.id,
    branchId: wanted.branchId,
    type: wanted.type,
    minCu: wanted.minCu,
    maxCu: wanted.maxCu,
    suspendTimeoutSeconds: wanted.suspendTimeoutSeconds,
    disabled: false,
    poolerEnabled: false,
    pgSettings: {},
    state: wanted.state,
    createdAtMs,
    updatedAtMs: createdAtMs,
    creationSource: 'console',
    queue: [],
    connected: wanted.connections > 0 && isActive ? [{ connections: wanted.connections, reconnects: false }] : [],
    waiting: [],
    usage: noUsage(world.nowMs),
  };
  if (lastActiveAtMs !== undefined) compute.lastActiveAtMs = lastActiveAtMs;
  if (isActive) compute.startedAtMs = createdAtMs;
  // One that the fleet calls active is so at the start, however old the file is.
  const dueAtMs = suspensionDueAtMs(compute);
  const isOverdue = dueAtMs !== undefined && dueAtMs <= world.nowMs;
  if (isOverdue || compute.connected.length > 0) compute.lastActiveAtMs = world.nowMs;
  return compute;
}

function ensureBranch(project: Project, wanted: FleetCompute): void {
  const known = project.branches.get(wanted.branchId);
  const isFirst = project.branches.size === 0;
  const branch: Branch = {
    id: wanted.branchId,
    projectId: project.id,
    name: wanted.branch?.name ?? known?.name ?? (isFirst ? 'main' : wanted.branchId),
    default: wanted.branch?.default ?? known?.default ?? isFirst,
    protected: wanted.branch?.protected ?? known?.protected ?? false,
    createdAtMs: project.createdAtMs,
    updatedAtMs: project.createdAtMs,
  };
  project.branches.set(branch.id, branch);
}

function createProject(world: WorldState, wanted: FleetProject): Project {
  const createdAtMs = Math.min(
    world.nowMs - YEAR_MS,
    ...wanted.computes.map(({ createdAtMs: at }) => at ?? world.nowMs),
  );
  const project: Project = {
    id: wanted.id,
    name: wanted.name,
    regionId: wanted.regionId,
    pgVersion: wanted.pgVersion,
    createdAtMs,
    updatedAtMs: createdAtMs,
    branches: new Map(),
    computes: new Map(),
    operations: [],
    openOperations: 0,
    deletedUsage: { activeMs: 0, cuMsHigh: 0, lastActiveAtMs: undefined },
  };
  if (wanted.account !== undefined) project.orgId = `org-${wanted.account}`;
  for (const one of wanted.computes) {
    ensureBranch(project, one);
    const compute = createCompute(world, project, one);
    project.computes.set(compute.id, compute);
    world.computes.set(compute.id, compute);
    planSuspension(world, compute);
  }
  return project;
}

/** A world as the fleet describes it at `startMs`. */
export function createWorld(options: WorldOptions): WorldState {
  const world: WorldState = {
    nowMs: options.startMs,
    random: createRandom(options.seed),
    projects: new Map(),
    projectIds: [],
    computes: new Map(),
    due: createDueIndex(),
    lastMicros: 0,
    operationFaults: [],
    events: [],
  };
  if (options.operationTimeMs !== undefined) world.operationTimeMs = options.operationTimeMs;
  for (const wanted of options.fleet.projects) world.projects.set(wanted.id, createProject(world, wanted));
  world.projectIds = [...world.projects.keys()].sort();
  return world;
}
