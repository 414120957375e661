import { MAX_AUTOSCALING_CU } from '../../domain/compute/compute-units.ts';
import type { Compute, WorldState } from './entities.ts';

const DEFAULT_TIMEOUT_SECONDS = 300;

/** Seconds of inactivity until a compute suspends; undefined if its timeout or its size prevents that. */
export function effectiveTimeoutSeconds(compute: Compute): number | undefined {
  if (compute.suspendTimeoutSeconds < 0 || compute.maxCu > MAX_AUTOSCALING_CU) return undefined;
  return compute.suspendTimeoutSeconds === 0 ? DEFAULT_TIMEOUT_SECONDS : compute.suspendTimeoutSeconds;
}

/** The instant at which the compute suspends if nothing else happens; undefined while something prevents it. */
export function suspensionDueAtMs(compute: Compute): number | undefined {
  const timeoutSeconds = effectiveTimeoutSeconds(compute);
  const isQuiet =
    compute.state === 'active' && compute.queue.length === 0 && !compute.connected.some((group) => group.isBusy);
  if (!isQuiet || timeoutSeconds === undefined) return undefined;
  return (compute.lastActiveAtMs ?? compute.createdAtMs) + timeoutSeconds * 1000;
}

/**
 * Plans a check for the instant of the suspension. A check that was planned earlier stays, and plans the next one when it comes: so activity moves
 * no entry of the index.
 */
export function planSuspension(world: WorldState, compute: Compute): void {
  const dueAtMs = suspensionDueAtMs(compute);
  if (dueAtMs === undefined) return;
  const checkAtMs = Math.max(dueAtMs, world.nowMs);
  if (compute.suspensionCheckAtMs !== undefined && compute.suspensionCheckAtMs <= checkAtMs) return;
  compute.suspensionCheckAtMs = checkAtMs;
  world.due.add(checkAtMs, { kind: 'suspension', compute });
}
