import { checkAvailability } from './availability.ts';
import { depart } from './connections.ts';
import type { Compute, DueItem, WorldState } from './entities.ts';
import { changeDemand } from './load.ts';
import { enqueue, proceed } from './operations.ts';
import { planSuspension, suspensionDueAtMs } from './suspension.ts';

function checkSuspension(world: WorldState, compute: Compute): void {
  compute.suspensionCheckAtMs = undefined;
  if (world.computes.get(compute.id) !== compute) return;
  const dueAtMs = suspensionDueAtMs(compute);
  if (dueAtMs !== undefined && dueAtMs <= world.nowMs)
    enqueue(world, compute, 'platform', [{ action: 'suspend_compute' }]);
  else planSuspension(world, compute);
}

function happen(world: WorldState, item: DueItem): void {
  if (item.kind === 'operation') proceed(world, item.operation);
  if (item.kind === 'suspension') checkSuspension(world, item.compute);
  if (item.kind === 'availability') checkAvailability(world, item.compute);
  if (item.kind === 'demand') changeDemand(world, item.compute, item.load);
  if (item.kind === 'departure') depart(world, item.compute, item.group);
}

/** Lets time pass: everything that falls due until then happens at its own instant, in order. */
export function advance(world: WorldState, toMs: number): void {
  for (let due = world.due.takeDue(toMs); due !== undefined; due = world.due.takeDue(toMs)) {
    world.nowMs = Math.max(world.nowMs, due.atMs);
    happen(world, due.item);
  }
  world.nowMs = Math.max(world.nowMs, toMs);
}
