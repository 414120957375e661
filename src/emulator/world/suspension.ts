import { MAX_AUTOSCALING_CU } from '../../domain/compute/compute-units.ts';
import type { Compute, WorldState } from './entities.ts';

const DEFAULT_TIMEOUT_SECONDS = 300;

/** Seconds of inactivity after which a compute suspends; undefined if it never does: by its timeout, or for its size. */
export function effectiveTimeoutSeconds(compute: Compute): number | undefined {
  if (compute.suspendTimeoutSeconds < 0 || compute.maxCu > MAX_AUTOSCALING_CU) return undefined;
  return compute.suspendTimeoutSeconds === 0 ? DEFAULT_TIMEOUT_SECONDS : compute.suspendTimeoutSeconds;
}

/** When the compute suspends if nothing else happens; undefined while something prevents it. */
export function suspensionDueAtMs(compute: Compute): number | undefined {
  const timeoutSeconds = effectiveTimeoutSeconds(compute);
  const isQuiet =
    compute.state === 'active' && compute.queue.length === 0 && !compute.connected.some((group) => group.isBusy);
  if (!isQuiet || timeoutSeconds === undefined) return undefined;
  return (compute.lastActiveAtMs ?? compute.createdAtMs) + timeoutSeconds * 1000;
}

/**
 * Makes sure that the index looks at the compute no later than when it is due. A check that comes too early asks for the
 * next one, so activity never has to search the index.
 */
export function planSuspension(world: WorldState, compute: Compute): void {
  const dueAtMs = suspensionDueAtMs(compute);
  if (dueAtMs === undefined) return;
  const checkAtMs = Math.max(dueAtMs, world.nowMs);
  if (compute.suspensionCheckAtMs !== undefined && compute.suspensionCheckAtMs <= checkAtMs) return;
  compute.suspensionCheckAtMs = checkAtMs;
  world.due.add(checkAtMs, { kind: 'suspension', compute });
}
