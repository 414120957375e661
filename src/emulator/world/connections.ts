import type { Compute, ConnectionGroup, WorldState } from './entities.ts';
import { planSuspension } from './suspension.ts';

export function countConnections(groups: readonly ConnectionGroup[]): number {
  return groups.reduce((sum, group) => sum + group.connections, 0);
}

/** When the compute was last active: at this moment, while somebody is connected. */
export function lastActiveAtMs(compute: Compute, nowMs: number): number | undefined {
  return compute.connected.length > 0 ? nowMs : compute.lastActiveAtMs;
}

/** Puts a group on an active compute; its stay begins now, unless it had begun before it was dropped. */
function admit(world: WorldState, compute: Compute, group: ConnectionGroup): void {
  compute.lastActiveAtMs = world.nowMs;
  if (group.forMs !== undefined && group.endsAtMs === undefined) {
    group.endsAtMs = world.nowMs + group.forMs;
    world.due.add(group.endsAtMs, { kind: 'departure', compute, group });
  }
  compute.connected.push(group);
}

/** True while new clients are let in at once; otherwise they wait for the next start. */
function acceptsClients(compute: Compute): boolean {
  return compute.state === 'active' && !compute.queue.some((operation) => operation.action === 'suspend_compute');
}

/** Lets everyone in who waits, if the compute accepts clients. */
export function admitWaiting(world: WorldState, compute: Compute): void {
  if (!acceptsClients(compute)) return;
  const groups = compute.waiting.splice(0);
  for (const group of groups) admit(world, compute, group);
  if (groups.length > 0) planSuspension(world, compute);
}

/** A group whose time has come leaves of its own accord; it was active until now. */
export function depart(world: WorldState, compute: Compute, group: ConnectionGroup): void {
  compute.waiting = compute.waiting.filter((other) => other !== group);
  if (!compute.connected.includes(group)) return;
  compute.connected = compute.connected.filter((other) => other !== group);
  compute.lastActiveAtMs = world.nowMs;
  planSuspension(world, compute);
}

/** Cuts everyone off: the compute's process ends. Those who reconnect wait for the next start. */
export function dropConnections(world: WorldState, compute: Compute): void {
  const dropped = countConnections(compute.connected);
  if (dropped === 0) return;
  compute.usage.connectionsDropped += dropped;
  compute.lastActiveAtMs = world.nowMs;
  compute.waiting.push(...compute.connected.filter((group) => group.reconnects));
  compute.connected = [];
  world.events.push({ type: 'dropped', atMs: world.nowMs, computeId: compute.id, connections: dropped });
}

/** Takes `connections` clients away, the oldest groups first; undefined takes all. Waiting clients give up too. */
export function disconnect(world: WorldState, compute: Compute, connections: number | undefined): number {
  let left = connections ?? Number.POSITIVE_INFINITY;
  const before = countConnections(compute.connected) + countConnections(compute.waiting);
  const shrink = (group: ConnectionGroup): boolean => {
    const leaving = Math.min(group.connections, left);
    group.connections -= leaving;
    left -= leaving;
    return group.connections > 0;
  };
  const hadConnected = compute.connected.length > 0;
  compute.connected = compute.connected.filter(shrink);
  compute.waiting = compute.waiting.filter(shrink);
  if (hadConnected) compute.lastActiveAtMs = world.nowMs;
  planSuspension(world, compute);
  return before - countConnections(compute.connected) - countConnections(compute.waiting);
}
