import type { WorldState } from './entities.ts';
import { findUnlockedCompute } from './find.ts';
import { enqueue } from './operations.ts';
import { type Outcome, refuse } from './outcome.ts';

/** Starts a sleeping compute; on one that is active already nothing happens. */
export function startCompute(world: WorldState, projectId: string, computeId: string): Outcome {
  const found = findUnlockedCompute(world, projectId, computeId);
  if (!found.ok) return found;
  const { compute } = found.value;
  if (compute.disabled) return refuse('precondition', 'endpoint is disabled');
  if (compute.state === 'active') return { ok: true, compute, operations: [] };
  return { ok: true, compute, operations: enqueue(world, compute, 'request', [{ action: 'start_compute' }]) };
}

/** Suspends an active compute, whoever is connected; on one that is not active nothing happens. */
export function suspendCompute(world: WorldState, projectId: string, computeId: string): Outcome {
  const found = findUnlockedCompute(world, projectId, computeId);
  if (!found.ok) return found;
  const { compute } = found.value;
  if (compute.state === 'init') return refuse('not_ready', 'endpoint has not started yet');
  if (compute.state !== 'active') return { ok: true, compute, operations: [] };
  return { ok: true, compute, operations: enqueue(world, compute, 'request', [{ action: 'suspend_compute' }]) };
}

/** Restarts an active compute and drops its connections; refused on one that is not active. */
export function restartCompute(world: WorldState, projectId: string, computeId: string): Outcome {
  const found = findUnlockedCompute(world, projectId, computeId);
  if (!found.ok) return found;
  const { compute } = found.value;
  if (compute.state === 'init') return refuse('not_ready', 'endpoint has not started yet');
  if (compute.state !== 'active') return refuse('conflict', 'endpoint is not active');
  const operations = enqueue(world, compute, 'request', [
    { action: 'suspend_compute', restarts: true },
    { action: 'start_compute' },
  ]);
  return { ok: true, compute, operations };
}
