import { admitWaiting, disconnect, leave, setBusy } from './connections.ts';
import type { ConnectionGroup, WorldState } from './entities.ts';
import { wakeIfWanted } from './operations.ts';
import { type Outcome, refuse } from './outcome.ts';

interface Arrival {
  computeId: string;
  connections: number;
  forMs?: number;
  reconnects: boolean;
  /** The size that serves them all, in CU. */
  cu?: number;
  /** To name them in events, and to let them leave one by one. */
  groupId?: string;
}

/** Clients arrive: they are let in at once, or wake the compute and wait for it. Nothing wakes a disabled one. */
export function connectClients(world: WorldState, arrival: Arrival): Outcome {
  const compute = world.computes.get(arrival.computeId);
  if (compute === undefined) return refuse('not_found', 'endpoint not found');
  if (compute.disabled) return refuse('precondition', 'endpoint is disabled');
  const group: ConnectionGroup = { connections: arrival.connections, reconnects: arrival.reconnects, isBusy: true };
  if (arrival.forMs !== undefined) group.forMs = arrival.forMs;
  if (arrival.cu !== undefined) group.cu = arrival.cu;
  if (arrival.groupId !== undefined) group.id = arrival.groupId;
  compute.waiting.push(group);
  admitWaiting(world, compute);
  wakeIfWanted(world, compute);
  return { ok: true, compute, operations: [...compute.queue] };
}

/** Clients leave; without a number, all of them. */
export function disconnectClients(world: WorldState, computeId: string, connections?: number): Outcome {
  const compute = world.computes.get(computeId);
  if (compute === undefined) return refuse('not_found', 'endpoint not found');
  disconnect(world, compute, connections);
  return { ok: true, compute, operations: [] };
}

/** What one group of clients does: works, rests, or leaves. */
export function changeClients(
  world: WorldState,
  computeId: string,
  groupId: string,
  doing: 'work' | 'rest' | 'leave',
): Outcome {
  const compute = world.computes.get(computeId);
  if (compute === undefined) return refuse('not_found', 'endpoint not found');
  if (doing === 'leave') leave(world, compute, groupId);
  else setBusy(world, compute, groupId, doing === 'work');
  return { ok: true, compute, operations: [] };
}
