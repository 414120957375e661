import { planAvailabilityCheck } from './advance.ts';
import { planRefusal, settingsProblem } from './compute-settings.ts';
import type { Compute, ComputeSettings, ComputeType, OperationAction, Project, WorldState } from './entities.ts';
import { enqueue } from './operations.ts';
import { findProject, LOCKED_MESSAGE, type Outcome, type Refusal, refuse } from './outcome.ts';
import { nextName } from './random.ts';
import { branchLedger, noUsage } from './usage.ts';

/** The default size of a compute, in CU. */
const DEFAULT_CU = 0.25;

export interface NewComputeRequest {
  branchId: string;
  type: ComputeType;
  settings: Partial<ComputeSettings>;
}

/** One given bound pulls the other one along, so that naming a size alone is enough. */
function completeSettings({ branchId, settings }: NewComputeRequest): ComputeSettings {
  const minCu = settings.minCu ?? Math.min(DEFAULT_CU, settings.maxCu ?? DEFAULT_CU);
  const maxCu = settings.maxCu ?? Math.max(DEFAULT_CU, minCu);
  const defaults = { suspendTimeoutSeconds: 0, disabled: false, poolerEnabled: false, name: undefined, pgSettings: {} };
  return { ...defaults, ...settings, branchId, minCu, maxCu };
}

/** Invariant: a branch has at most one read-write compute. */
export function hasPrimary(project: Project, branchId: string, except?: Compute): boolean {
  return [...project.computes.values()].some(
    (other) => other.branchId === branchId && other.type === 'read_write' && other !== except,
  );
}

function newComputeRefusal(
  project: Project,
  wanted: NewComputeRequest,
  settings: ComputeSettings,
): Refusal | undefined {
  const problem = settingsProblem(settings);
  if (problem !== undefined) return refuse('invalid', problem).refusal;
  const refusal = planRefusal(project.plan, wanted.settings);
  if (refusal !== undefined) return refusal;
  if (!project.branches.has(wanted.branchId)) return refuse('not_found', 'branch not found').refusal;
  if (wanted.type === 'read_write' && hasPrimary(project, wanted.branchId)) {
    return refuse('conflict', 'read-write endpoint already exists').refusal;
  }
  return undefined;
}

function newComputeId(world: WorldState): string {
  let id = `ep-${nextName(world.random)}`;
  while (world.computes.has(id)) id = `ep-${nextName(world.random)}`;
  return id;
}

/** Adds a compute to a branch that is there, after the operations in `before`; everything has been checked. */
export function addCompute(
  world: WorldState,
  project: Project,
  wanted: NewComputeRequest,
  before: readonly OperationAction[],
): { compute: Compute; operations: ReturnType<typeof enqueue> } {
  const settings = completeSettings(wanted);
  const compute = computeRecord(world, {
    id: newComputeId(world),
    project,
    type: wanted.type,
    settings,
    state: settings.disabled ? 'idle' : 'init',
    createdAtMs: world.nowMs,
    creationSource: 'console',
  });
  project.computes.set(compute.id, compute);
  world.computes.set(compute.id, compute);
  planAvailabilityCheck(world, compute);
  const start: OperationAction[] = settings.disabled ? [] : ['start_compute'];
  const operations = enqueue(
    world,
    compute,
    'request',
    [...before, ...start].map((action) => ({ action })),
  );
  return { compute, operations };
}

/** Why a compute can't be added; undefined if it can. */
export function additionRefusal(project: Project, wanted: NewComputeRequest): Refusal | undefined {
  return newComputeRefusal(project, wanted, completeSettings(wanted));
}

/** A new compute is `init` until its start_compute has ended. */
export function createCompute(world: WorldState, projectId: string, wanted: NewComputeRequest): Outcome {
  const project = findProject(world, projectId);
  if (!project.ok) return project;
  const refusal = additionRefusal(project.value, wanted);
  if (refusal !== undefined) return { ok: false, refusal };
  if (project.value.openOperations > 0) return refuse('locked', LOCKED_MESSAGE);
  return { ok: true, ...addCompute(world, project.value, wanted, []) };
}

interface NewCompute {
  id: string;
  project: Project;
  type: ComputeType;
  settings: ComputeSettings;
  state: Compute['state'];
  createdAtMs: number;
  creationSource: string;
}

/** A compute that nobody has used yet. */
export function computeRecord(world: WorldState, wanted: NewCompute): Compute {
  const { id, project, type, settings, state, createdAtMs, creationSource } = wanted;
  return {
    id,
    projectId: project.id,
    branchId: settings.branchId,
    type,
    name: settings.name,
    minCu: settings.minCu,
    maxCu: settings.maxCu,
    suspendTimeoutSeconds: settings.suspendTimeoutSeconds,
    disabled: settings.disabled,
    poolerEnabled: settings.poolerEnabled,
    pgSettings: settings.pgSettings,
    state,
    pendingState: undefined,
    createdAtMs,
    updatedAtMs: createdAtMs,
    lastActiveAtMs: undefined,
    startedAtMs: undefined,
    suspendedAtMs: undefined,
    creationSource,
    queue: [],
    connected: [],
    waiting: [],
    suspensionCheckAtMs: undefined,
    usage: noUsage(world.nowMs),
    ledger: branchLedger(world, project, settings.branchId),
    awake: [],
  };
}
