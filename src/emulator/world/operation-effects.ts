import { admitWaiting, dropConnections, sendWaitingAway } from './connections.ts';
import type { Compute, ComputeState, Operation, WorldState } from './entities.ts';
import { addUsage, branchLedger } from './usage.ts';

/** Older ones are forgotten. */
const MOST_INTERVALS = 20_000;

/** Every change of state goes through here, so that usage is added up and seen as it was. */
function enterState(world: WorldState, compute: Compute, state: ComputeState): void {
  addUsage(compute, world.nowMs);
  const [last] = compute.awake.slice(-1);
  if (state === 'active' && compute.state !== 'active') compute.awake.push({ fromMs: world.nowMs });
  if (state !== 'active' && last !== undefined && compute.state === 'active') last.toMs = world.nowMs;
  if (compute.awake.length > MOST_INTERVALS) compute.awake.shift();
  compute.state = state;
  world.events.push({ type: 'state', atMs: world.nowMs, computeId: compute.id, state });
}

function finishStart(world: WorldState, compute: Compute): void {
  enterState(world, compute, 'active');
  compute.startedAtMs = world.nowMs;
  compute.lastActiveAtMs = world.nowMs;
  admitWaiting(world, compute);
}

/** Invariant: connections end exactly when the compute leaves `active`. */
function finishSuspend(world: WorldState, compute: Compute, operation: Operation): void {
  if (compute.state !== 'active') return;
  if (operation.restarts) compute.usage.restarts += 1;
  dropConnections(world, compute);
  enterState(world, compute, 'idle');
  compute.suspendedAtMs = world.nowMs;
}

/** What the end of an operation does to its compute. */
export function finishEffect(world: WorldState, compute: Compute, operation: Operation): void {
  if (operation.action === 'start_compute') finishStart(world, compute);
  if (operation.action === 'suspend_compute') finishSuspend(world, compute, operation);
}

/**
 * A failed operation leaves the compute as it was; settings that it was to apply are taken back. Clients that waited for a
 * start that failed get an error and go: else they would start it over and over.
 */
export function failEffect(world: WorldState, compute: Compute, operation: Operation): void {
  if (operation.action === 'start_compute') sendWaitingAway(world, compute);
  if (operation.rollback === undefined) return;
  addUsage(compute, world.nowMs);
  Object.assign(compute, operation.rollback);
  const project = world.projects.get(compute.projectId);
  if (project !== undefined) compute.ledger = branchLedger(world, project, compute.branchId);
}
