import { depart } from './connections.ts';
import type { Compute, DueItem, WorldState } from './entities.ts';
import { changeDemand } from './load.ts';
import { enqueue, proceed } from './operations.ts';
import { nextRandom } from './random.ts';
import { planSuspension, suspensionDueAtMs } from './suspension.ts';

function checkSuspension(world: WorldState, compute: Compute): void {
  compute.suspensionCheckAtMs = undefined;
  if (world.computes.get(compute.id) !== compute) return;
  const dueAtMs = suspensionDueAtMs(compute);
  if (dueAtMs !== undefined && dueAtMs <= world.nowMs) enqueue(world, compute, 'platform', ['suspend_compute']);
  else planSuspension(world, compute);
}

function execute(world: WorldState, item: DueItem): void {
  if (item.kind === 'operation') proceed(world, item.operation);
  if (item.kind === 'suspension') checkSuspension(world, item.compute);
  if (item.kind === 'availability') checkAvailability(world, item.compute);
  if (item.kind === 'demand') changeDemand(world, item.compute, item.load);
  if (item.kind === 'departure') depart(world, item.compute, item.group);
}

/** Advances the time; everything that falls due until `toMs` happens in order, each at its own instant. */
export function advance(world: WorldState, toMs: number): void {
  for (let due = world.due.takeDue(toMs); due !== undefined; due = world.due.takeDue(toMs)) {
    world.nowMs = Math.max(world.nowMs, due.atMs);
    execute(world, due.item);
  }
  world.nowMs = Math.max(world.nowMs, toMs);
}

/** Plans the next availability check, 0.5 to 1.5 intervals from now. */
export function planAvailabilityCheck(world: WorldState, compute: Compute): void {
  if (world.availabilityCheckMs === undefined) return;
  const afterMs = world.availabilityCheckMs * (0.5 + nextRandom(world.random));
  world.due.add(world.nowMs + Math.ceil(afterMs), { kind: 'availability', compute });
}

/** Checks that the compute can be reached, unless its project has open operations. With `checksWake`, a sleeping one starts. */
function checkAvailability(world: WorldState, compute: Compute): void {
  if (world.computes.get(compute.id) !== compute) return;
  const project = world.projects.get(compute.projectId);
  const isWoken = world.checksWake && compute.state === 'idle' && !compute.disabled;
  if (project?.openOperations === 0) {
    enqueue(world, compute, 'platform', isWoken ? ['start_compute', 'check_availability'] : ['check_availability']);
  }
  planAvailabilityCheck(world, compute);
}
