import { dropConnections } from './connections.ts';
import { hasPrimary, planRefusal, settingsProblem } from './create-compute.ts';
import type { Compute, ComputeSettings, Project, WorldState } from './entities.ts';
import { enqueue, type NewOperation, touch } from './operations.ts';
import { LOCKED_MESSAGE, type Outcome, type Refused, refuse } from './outcome.ts';
import { planSuspension } from './suspension.ts';
import { addUsage, branchLedger } from './usage.ts';

function settingsOf(compute: Compute): ComputeSettings {
  const { branchId, minCu, maxCu, suspendTimeoutSeconds, disabled, poolerEnabled, name, pgSettings } = compute;
  return { branchId, minCu, maxCu, suspendTimeoutSeconds, disabled, poolerEnabled, name, pgSettings };
}

function branchRefusal(project: Project, compute: Compute, branchId: string): Refused | undefined {
  if (branchId === compute.branchId) return undefined;
  if (!project.branches.has(branchId)) return refuse('not_found', 'branch not found');
  if (compute.type === 'read_write' && hasPrimary(project, branchId, compute)) {
    return refuse('conflict', 'read-write endpoint already exists');
  }
  return undefined;
}

/**
 * The operations that apply a change of settings. A new size restarts an active compute and drops its connections. A compute that sleeps needs no
 * operations, unless its branch changes or `idlePatch` wakes it.
 */
function operationsFor(world: WorldState, compute: Compute, before: ComputeSettings): readonly NewOperation[] {
  const apply: NewOperation = { action: 'apply_config', rollback: before };
  const suspend: NewOperation = { action: 'suspend_compute' };
  if (compute.branchId !== before.branchId) return [apply, suspend];
  const isResized = compute.minCu !== before.minCu || compute.maxCu !== before.maxCu;
  if (compute.state !== 'active') {
    const isWoken = isResized && world.idlePatch === 'wakes' && compute.state === 'idle' && !compute.disabled;
    return isWoken ? [{ action: 'start_compute' }, suspend] : [];
  }
  if (compute.disabled && !before.disabled) return isResized ? [apply, suspend] : [suspend];
  const restarts =
    isResized ||
    (world.behaviours.timeoutChange === 'restarts' && compute.suspendTimeoutSeconds !== before.suspendTimeoutSeconds);
  if (restarts) return [apply, { ...suspend, restarts: true }, { action: 'start_compute' }];
  return JSON.stringify(compute.pgSettings) === JSON.stringify(before.pgSettings) ? [] : [apply];
}

/** Changes settings, which are visible at once. See {@link operationsFor} for restarts of an active compute, and starts of an idle one. */
export function updateCompute(
  world: WorldState,
  project: Project,
  compute: Compute,
  changes: Partial<ComputeSettings>,
): Outcome {
  const before = settingsOf(compute);
  const after = { ...before, ...changes };
  const problem = settingsProblem(after);
  if (problem !== undefined) return refuse('invalid', problem);
  const refused = planRefusal(project.plan, changes) ?? branchRefusal(project, compute, after.branchId);
  if (refused) return refused;
  addUsage(compute, world.nowMs);
  Object.assign(compute, after);
  compute.ledger = branchLedger(world, project, compute.branchId);
  touch(world, project, compute);
  const operations = enqueue(world, compute, 'request', operationsFor(world, compute, before));
  planSuspension(world, compute);
  return { ok: true, compute, operations };
}

/** Starts a sleeping compute; an active one stays as it is. */
export function startCompute(world: WorldState, _project: Project, compute: Compute): Outcome {
  if (compute.disabled) return refuse('precondition', 'endpoint is disabled');
  if (compute.state === 'active') return { ok: true, compute, operations: [] };
  return { ok: true, compute, operations: enqueue(world, compute, 'request', ['start_compute']) };
}

/** Suspends an active compute, even with clients connected; an idle one stays as it is. */
export function suspendCompute(world: WorldState, _project: Project, compute: Compute): Outcome {
  if (compute.state === 'init') return refuse('not_ready', 'endpoint has not started yet');
  if (compute.state !== 'active') return { ok: true, compute, operations: [] };
  return { ok: true, compute, operations: enqueue(world, compute, 'request', ['suspend_compute']) };
}

/** Restarts an active compute and drops its connections; refused if it is not active. */
export function restartCompute(world: WorldState, _project: Project, compute: Compute): Outcome {
  if (compute.state === 'init') return refuse('not_ready', 'endpoint has not started yet');
  if (compute.state !== 'active') return refuse('conflict', 'endpoint is not active');
  const operations = enqueue(world, compute, 'request', [
    { action: 'suspend_compute', restarts: true },
    'start_compute',
  ]);
  return { ok: true, compute, operations };
}

/** Removes a compute from the world; its usage stays with its project. */
export function removeCompute(world: WorldState, project: Project, compute: Compute): void {
  addUsage(compute, world.nowMs);
  dropConnections(world, compute);
  project.computes.delete(compute.id);
  world.computes.delete(compute.id);
  project.deletedUsage.activeMs += compute.usage.activeMs;
  project.deletedUsage.cuMs += compute.usage.cuMs;
  const lastActiveAtMs = Math.max(compute.lastActiveAtMs ?? 0, project.deletedUsage.lastActiveAtMs ?? 0);
  if (lastActiveAtMs > 0) project.deletedUsage.lastActiveAtMs = lastActiveAtMs;
  world.events.push({ type: 'deleted', atMs: world.nowMs, computeId: compute.id });
}

/** Deletes a compute at once, without operations. A missing one is no error: the outcome has no compute. */
export function deleteCompute(world: WorldState, project: Project, computeId: string): Outcome {
  const compute = project.computes.get(computeId);
  if (compute === undefined) return { ok: true, operations: [] };
  if (project.openOperations > 0) return refuse('locked', LOCKED_MESSAGE);
  removeCompute(world, project, compute);
  touch(world, project);
  return { ok: true, compute, operations: [] };
}
