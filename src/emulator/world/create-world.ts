import { DEFAULT_CONSUMPTION, type Fleet, type FleetCompute, type FleetProject, type PastOperation } from '../fleet.ts';
import { type Accounts, FIRST_USER_ID, type Plan } from './accounts.ts';
import { planAvailabilityCheck } from './advance.ts';
import { defaultBranch } from './branches.ts';
import { computeRecord, DEFAULT_SETTINGS } from './create-compute.ts';
import { createDueIndex } from './due-index.ts';
import {
  type Behaviours,
  type Branch,
  type Compute,
  type Operation,
  type OperationAction,
  type OperationStatus,
  type Project,
  type ProjectUpdatedAt,
  USUAL_BEHAVIOURS,
  type WorldState,
} from './entities.ts';
import { startLoad } from './load.ts';
import { projectRecord } from './projects.ts';
import { createRandom, nextUuid } from './random.ts';
import { planSuspension, suspensionDueAtMs } from './suspension.ts';
import { DAY_MS } from './units.ts';

const YEAR_MS = 365 * DAY_MS;
const DEFAULT_PLAN: Plan = 'scale';

interface WorldOptions {
  fleet: Fleet;
  seed: number;
  startMs: number;
  operationTimeMs?: number | undefined;
  hasRealServers?: boolean;
  availabilityCheckMs?: number | undefined;
  checksWake?: boolean | undefined;
  idlePatch?: 'stays' | 'wakes' | undefined;
  projectUpdatedAt?: ProjectUpdatedAt | undefined;
  behaviours?: Partial<Behaviours> | undefined;
}

function fleetCompute(world: WorldState, project: Project, wanted: FleetCompute): Compute {
  const { id, type, state, branchId, minCu, maxCu, suspendTimeoutSeconds } = wanted;
  const createdAtMs = wanted.createdAtMs ?? project.createdAtMs;
  const settings = { ...DEFAULT_SETTINGS, branchId, minCu, maxCu, suspendTimeoutSeconds };
  const compute = computeRecord(world, project, { id, type, settings, state, createdAtMs });
  compute.lastActiveAtMs = wanted.lastActiveAtMs;
  if (state !== 'active') return compute;
  compute.awake.push({ fromMs: world.nowMs });
  compute.startedAtMs = createdAtMs;
  if (wanted.connections > 0)
    compute.connected.push({ connections: wanted.connections, reconnects: false, isBusy: true });
  // An active compute of the fleet doesn't suspend at once, however old the file is.
  const dueAtMs = suspensionDueAtMs(compute);
  const isOverdue = dueAtMs !== undefined && dueAtMs <= world.nowMs;
  if (isOverdue || compute.connected.length > 0) compute.lastActiveAtMs = world.nowMs;
  compute.lastActiveAtMs ??= world.nowMs;
  return compute;
}

function ensureBranch(project: Project, wanted: FleetCompute): void {
  const existing = project.branches.get(wanted.branchId);
  const isFirst = project.branches.size === 0;
  const branch: Branch = {
    id: wanted.branchId,
    projectId: project.id,
    name: wanted.branch?.name ?? existing?.name ?? (isFirst ? 'main' : wanted.branchId),
    default: wanted.branch?.default ?? existing?.default ?? isFirst,
    protected: wanted.branch?.protected ?? existing?.protected ?? false,
    createdAtMs: project.createdAtMs,
    updatedAtMs: project.createdAtMs,
  };
  project.branches.set(branch.id, branch);
}

function fleetProject(world: WorldState, wanted: FleetProject): Project {
  const { id, name, regionId, pgVersion, plan = DEFAULT_PLAN } = wanted;
  const instants = wanted.computes.map(({ createdAtMs }) => createdAtMs ?? world.nowMs);
  const createdAtMs = Math.min(world.nowMs - YEAR_MS, ...instants);
  const orgId = wanted.account === undefined ? undefined : organizationOf(world, wanted.account);
  const project = projectRecord({ id, name, regionId, pgVersion, plan, createdAtMs, orgId });
  for (const wantedCompute of wanted.computes) {
    ensureBranch(project, wantedCompute);
    const compute = fleetCompute(world, project, wantedCompute);
    project.computes.set(compute.id, compute);
    world.computes.set(compute.id, compute);
    planSuspension(world, compute);
    planAvailabilityCheck(world, compute);
    (wantedCompute.load ?? []).forEach((load, index) => {
      startLoad(world, compute, load, index);
    });
  }
  adoptBranches(project);
  addPastOperations(world, project, wanted);
  return project;
}

/** Adds the operations from before the start. Their cursors are made unique. */
function addPastOperations(world: WorldState, project: Project, wanted: FleetProject): void {
  for (const { id, branchId, pastOperations = [] } of wanted.computes) {
    for (const past of pastOperations) project.operations.push(pastOperation(world, project, { id, branchId }, past));
  }
  project.operations.sort((left, right) => left.createdAtMicros - right.createdAtMicros);
  project.operations.forEach((operation, index) => {
    const before = project.operations[index - 1]?.createdAtMicros ?? 0;
    operation.createdAtMicros = Math.max(operation.createdAtMicros, before + 1);
  });
  world.lastMicros = Math.max(world.lastMicros, project.operations.at(-1)?.createdAtMicros ?? 0);
}

function pastOperation(
  world: WorldState,
  project: Project,
  compute: { id: string; branchId: string },
  { action, status, createdAtMs, durationMs }: PastOperation,
): Operation {
  return {
    id: nextUuid(world.random),
    projectId: project.id,
    branchId: compute.branchId,
    computeId: compute.id,
    // Fleet files may contain actions of the real service that the emulator doesn't have.
    action: action as OperationAction,
    status: status as OperationStatus,
    failuresCount: status === 'failed' ? 1 : 0,
    createdAtMicros: createdAtMs * 1000,
    updatedAtMs: createdAtMs + durationMs,
    endedAtMs: createdAtMs + durationMs,
  };
}

/** Makes every other branch a child of the default branch, since a fleet names no parents. */
function adoptBranches(project: Project): void {
  const parent = defaultBranch(project);
  if (parent === undefined) return;
  for (const branch of project.branches.values()) if (branch !== parent) branch.parentId ??= parent.id;
}

/** The organization of an account, created on first use; the first user is its administrator. */
function organizationOf(world: WorldState, account: string): string {
  const id = account.startsWith('org-') ? account : `org-${account}`;
  const { organizations, users } = world.accounts;
  if (!organizations.has(id)) organizations.set(id, { id, name: account, createdAtMs: world.nowMs - YEAR_MS });
  users.get(FIRST_USER_ID)?.memberships.set(id, 'admin');
  return id;
}

function firstAccounts(): Accounts {
  const user = { id: FIRST_USER_ID, name: 'Ebb Emulator', email: 'emulator@example.com', memberships: new Map() };
  return { users: new Map([[user.id, user]]), organizations: new Map(), keysByToken: new Map(), lastKeyId: 0 };
}

/** The world of the fleet at `startMs`, without API keys. */
export function createWorld(options: WorldOptions): WorldState {
  const { fleet, seed, startMs } = options;
  const world: WorldState = {
    operationTimeMs: options.operationTimeMs,
    availabilityCheckMs: options.availabilityCheckMs,
    hasRealServers: options.hasRealServers ?? false,
    checksWake: options.checksWake ?? false,
    idlePatch: options.idlePatch ?? 'stays',
    projectUpdatedAt: options.projectUpdatedAt ?? 'moves',
    behaviours: { ...USUAL_BEHAVIOURS, ...options.behaviours },
    consumption: { ...DEFAULT_CONSUMPTION, ...fleet.consumption },
    nowMs: startMs,
    random: createRandom(seed),
    seed,
    projects: new Map(),
    projectIds: [],
    computes: new Map(),
    ledgers: new Map(),
    accounts: firstAccounts(),
    plan: DEFAULT_PLAN,
    due: createDueIndex(),
    lastMicros: 0,
    operationFaults: [],
    events: [],
  };
  for (const wanted of fleet.projects) world.projects.set(wanted.id, fleetProject(world, wanted));
  world.projectIds = [...world.projects.keys()].sort();
  return world;
}
