import type { Behaviours, Compute, ConnectionGroup, WorldEvent, WorldState } from './entities.ts';
import { planSuspension } from './suspension.ts';
import { addUsage } from './usage.ts';

export function countConnections(groups: readonly ConnectionGroup[]): number {
  return groups.reduce((sum, group) => sum + group.connections, 0);
}

/** The delay with `lastActive: late`. */
const LATE_MS = 60_000;

/** `last_active` as the API shows it: the present time while a client is busy. With `late`, the value of a minute ago. */
export function lastActiveAtMs(compute: Compute, nowMs: number, lastActive: 'current' | 'late'): number | undefined {
  const isBusy = compute.connected.some((group) => group.isBusy);
  if (lastActive === 'current') return isBusy ? nowMs : compute.lastActiveAtMs;
  const thenMs = nowMs - LATE_MS;
  if (isBusy && (compute.lastActiveAtMs ?? 0) <= thenMs) return thenMs;
  return [...compute.activity, compute.lastActiveAtMs ?? thenMs].findLast((atMs) => atMs <= thenMs);
}

/** Records activity now. With `lastActive: late`, earlier values are kept as long as they may be shown. */
export function markActive(world: WorldState, compute: Compute): void {
  const { activity, lastActiveAtMs: beforeMs } = compute;
  if (beforeMs !== undefined && world.behaviours.lastActive === 'late') activity.push(beforeMs);
  while (activity[1] !== undefined && activity[1] <= world.nowMs - LATE_MS) activity.shift();
  compute.lastActiveAtMs = world.nowMs;
}

type GroupChange = Extract<WorldEvent, { type: 'clients' }>['change'];

/** Reports a change of groups as events. Groups without an id are not reported. */
function announce(world: WorldState, compute: Compute, groups: readonly ConnectionGroup[], change: GroupChange): void {
  for (const { id } of groups) {
    if (id !== undefined)
      world.events.push({ type: 'clients', atMs: world.nowMs, computeId: compute.id, groupId: id, change });
  }
}

/** Connects a group to an active compute. The time for which the group stays (`forMs`) begins with its first connection. */
function admit(world: WorldState, compute: Compute, group: ConnectionGroup): void {
  addUsage(compute, world.nowMs);
  markActive(world, compute);
  if (group.forMs !== undefined && group.endsAtMs === undefined) {
    group.endsAtMs = world.nowMs + group.forMs;
    world.due.add(group.endsAtMs, { kind: 'departure', compute, group });
  }
  compute.connected.push(group);
  announce(world, compute, [group], 'connected');
}

/** If false, new clients wait for the next start. */
function acceptsClients(compute: Compute): boolean {
  return compute.state === 'active' && !compute.queue.some((operation) => operation.action === 'suspend_compute');
}

/** Connects all waiting clients, if the compute accepts clients. */
export function admitWaiting(world: WorldState, compute: Compute): void {
  if (!acceptsClients(compute)) return;
  const groups = compute.waiting.splice(0);
  for (const group of groups) admit(world, compute, group);
  if (groups.length > 0) planSuspension(world, compute);
}

/** Sends all waiting clients away with an error. */
export function rejectWaiting(world: WorldState, compute: Compute): void {
  announce(world, compute, compute.waiting.splice(0), 'sent_away');
}

/** Makes a group busy or idle. Both changes count as activity. */
export function setBusy(world: WorldState, compute: Compute, groupId: string, isBusy: boolean): void {
  const group = compute.connected.find(({ id }) => id === groupId);
  if (group === undefined) return;
  addUsage(compute, world.nowMs);
  group.isBusy = isBusy;
  markActive(world, compute);
  planSuspension(world, compute);
}

/** Removes a group that leaves early, whether it is connected or still waiting. */
export function removeGroup(world: WorldState, compute: Compute, groupId: string): void {
  const group = [...compute.connected, ...compute.waiting].find(({ id }) => id === groupId);
  if (group !== undefined) depart(world, compute, group);
}

/** Removes a group. If it was connected, this counts as activity. */
export function depart(world: WorldState, compute: Compute, group: ConnectionGroup): void {
  compute.waiting = compute.waiting.filter((other) => other !== group);
  if (!compute.connected.includes(group)) return;
  addUsage(compute, world.nowMs);
  compute.connected = compute.connected.filter((other) => other !== group);
  markActive(world, compute);
  planSuspension(world, compute);
}

/** Cuts clients off because the compute's process ends. Clients that reconnect wait for the next start. */
export function dropConnections(world: WorldState, compute: Compute, drops: Behaviours['restartDrops'] = 'all'): void {
  const isDropped = ({ isBusy }: ConnectionGroup) => drops === 'all' || (drops === 'busy' && isBusy);
  const groups = compute.connected.filter(isDropped);
  const dropped = countConnections(groups);
  if (dropped === 0) return;
  addUsage(compute, world.nowMs);
  compute.usage.connectionsDropped += dropped;
  markActive(world, compute);
  announce(world, compute, groups, 'dropped');
  compute.waiting.push(...groups.filter((group) => group.reconnects));
  compute.connected = compute.connected.filter((group) => !isDropped(group));
  world.events.push({ type: 'dropped', atMs: world.nowMs, computeId: compute.id, connections: dropped });
}

/** Disconnects this many clients, or all if `connections` is undefined: first connected ones, then waiting ones, of the oldest groups first. */
export function disconnect(world: WorldState, compute: Compute, connections: number | undefined): void {
  let left = connections ?? Number.POSITIVE_INFINITY;
  const shrink = (group: ConnectionGroup): boolean => {
    const leaving = Math.min(group.connections, left);
    group.connections -= leaving;
    left -= leaving;
    return group.connections > 0;
  };
  addUsage(compute, world.nowMs);
  const hadConnected = compute.connected.length > 0;
  compute.connected = compute.connected.filter(shrink);
  compute.waiting = compute.waiting.filter(shrink);
  if (hadConnected) markActive(world, compute);
  planSuspension(world, compute);
}
