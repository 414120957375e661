import type { Load } from '../fleet.ts';
import { admitWaiting, depart } from './connections.ts';
import { demandAt } from './demand.ts';
import type { Compute, ComputeLoad, WorldState } from './entities.ts';
import { wakeIfWanted } from './operations.ts';
import { addUsage } from './usage.ts';

const SHORTEST_VISIT_MS = 1000;

/** The clients of a load come and go from now on. `index` tells the loads of a compute apart. */
export function startLoad(world: WorldState, compute: Compute, load: Load, index: number): void {
  let seed = world.seed ^ Math.imul(index + 1, 0x27d4eb2f);
  for (const character of compute.id) seed = Math.imul(seed ^ (character.codePointAt(0) ?? 0), 0x01000193);
  const state: ComputeLoad = { load, seed, group: undefined };
  world.due.add(world.nowMs, { kind: 'demand', compute, load: state });
}

/** What the clients of a load ask for changes: they come, go, or need another size. */
export function changeDemand(world: WorldState, compute: Compute, state: ComputeLoad): void {
  if (world.computes.get(compute.id) !== compute) return;
  const { isBusy, cu, untilMs } = demandAt(state.load, world.nowMs, state.seed);
  if (Number.isFinite(untilMs)) world.due.add(Math.ceil(untilMs), { kind: 'demand', compute, load: state });
  if (isBusy) require(world, compute, state, cu);
  else if (state.group !== undefined) {
    // A client that waits for a start still does what it came for.
    if (compute.waiting.includes(state.group)) state.group.forMs = SHORTEST_VISIT_MS;
    else depart(world, compute, state.group);
    state.group = undefined;
  }
}

function require(world: WorldState, compute: Compute, state: ComputeLoad, cu: number): void {
  const { group } = state;
  if (group !== undefined && (compute.connected.includes(group) || compute.waiting.includes(group))) {
    addUsage(compute, world.nowMs);
    group.cu = cu;
    return;
  }
  if (compute.disabled) return;
  state.group = { connections: 1, reconnects: true, isBusy: true, cu, cause: state.load.class };
  compute.waiting.push(state.group);
  admitWaiting(world, compute);
  wakeIfWanted(world, compute);
}
