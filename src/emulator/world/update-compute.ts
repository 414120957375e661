import { settingsProblem } from './compute-settings.ts';
import { hasPrimary } from './create-compute.ts';
import type { Compute, ComputeSettings, Operation, Project, WorldState } from './entities.ts';
import { findUnlockedCompute } from './find.ts';
import { enqueue, touch } from './operations.ts';
import { type Outcome, type Refusal, refuse } from './outcome.ts';
import { planRefusal } from './plan-limits.ts';
import { planSuspension } from './suspension.ts';
import { branchLedger, settleUsage } from './usage.ts';

function settingsOf(compute: Compute): ComputeSettings {
  const { branchId, minCu, maxCu, suspendTimeoutSeconds, disabled, poolerEnabled, name, pgSettings } = compute;
  return { branchId, minCu, maxCu, suspendTimeoutSeconds, disabled, poolerEnabled, name, pgSettings };
}

function branchRefusal(project: Project, compute: Compute, branchId: string): Refusal | undefined {
  if (branchId === compute.branchId) return undefined;
  if (!project.branches.has(branchId)) return refuse('not_found', 'branch not found').refusal;
  if (compute.type === 'read_write' && hasPrimary(project, branchId, compute)) {
    return refuse('conflict', 'read-write endpoint already exists').refusal;
  }
  return undefined;
}

/** The operations that bring a change about; none where nothing runs that would have to be told. */
function operationsFor(world: WorldState, compute: Compute, before: ComputeSettings): Operation[] {
  const rollback = before;
  if (compute.branchId !== before.branchId) {
    return enqueue(world, compute, 'request', [{ action: 'apply_config', rollback }, { action: 'suspend_compute' }]);
  }
  const resized = compute.minCu !== before.minCu || compute.maxCu !== before.maxCu;
  if (compute.state !== 'active') {
    const isWoken = resized && world.idlePatch === 'wakes' && compute.state === 'idle' && !compute.disabled;
    const actions = ['start_compute', 'suspend_compute'] as const;
    return isWoken
      ? enqueue(
          world,
          compute,
          'request',
          actions.map((action) => ({ action })),
        )
      : [];
  }
  const reconfigured = JSON.stringify(compute.pgSettings) !== JSON.stringify(before.pgSettings);
  const suspended = compute.disabled && !before.disabled;
  if (suspended && !resized) return enqueue(world, compute, 'request', [{ action: 'suspend_compute' }]);
  if (suspended)
    return enqueue(world, compute, 'request', [{ action: 'apply_config', rollback }, { action: 'suspend_compute' }]);
  if (!resized) return reconfigured ? enqueue(world, compute, 'request', [{ action: 'apply_config', rollback }]) : [];
  return enqueue(world, compute, 'request', [
    { action: 'apply_config', rollback },
    { action: 'suspend_compute', restarts: true },
    { action: 'start_compute' },
  ]);
}

/**
 * Changes settings. They show at once; a running compute takes a new size by a restart, which drops its connections. An idle
 * one is changed without operations and stays idle, unless `idlePatch` says that it is woken for it.
 */
export function updateCompute(
  world: WorldState,
  projectId: string,
  computeId: string,
  changes: Partial<ComputeSettings>,
): Outcome {
  const found = findUnlockedCompute(world, projectId, computeId);
  if (!found.ok) return found;
  const { project, compute } = found.value;
  const before = settingsOf(compute);
  const after = { ...before, ...changes };
  const problem = settingsProblem(after);
  if (problem !== undefined) return refuse('invalid', problem);
  const refusal = planRefusal(project.plan, changes) ?? branchRefusal(project, compute, after.branchId);
  if (refusal !== undefined) return { ok: false, refusal };
  settleUsage(compute, world.nowMs);
  Object.assign(compute, after);
  compute.ledger = branchLedger(world, project, compute.branchId);
  touch(world, project, compute);
  const operations = operationsFor(world, compute, before);
  planSuspension(world, compute);
  return { ok: true, compute, operations };
}
