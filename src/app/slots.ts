import { resolveDisruption } from '../domain/disruption.ts';
import { atOnceAllowed } from '../domain/gates/at-once.ts';
import type { Action } from '../domain/plan.ts';
import { RESTORE } from '../domain/restore.ts';
import type { Context } from './context.ts';
import { OPERATION_DEADLINE_MS } from './settle-operations.ts';

/** After a refusal a policy counts as full for so long, in milliseconds; then it is tried again. */
export const SLOT_RETRY_MS = 5_000;

/** How many computes a policy selects, and which policies have no room for another restart: of this daemon. */
export interface Slots {
  /** True if a policy had no room a moment ago. */
  isFull(policy: string): boolean;
  /** True if the compute may be disturbed now for this policy, over all daemons. Holds until released, or its deadline. */
  take(context: Context, computeId: string, action: Action): Promise<boolean>;
  release(context: Context, computeId: string, policy: string): Promise<void>;
}

export function createSlots(now: () => number): Slots {
  const fullUntilMs = new Map<string, number>();
  return {
    isFull: (policy) => (fullUntilMs.get(policy) ?? 0) > now(),
    async take(context, computeId, { policy }) {
      const nowMs = now();
      const taken = await context.store.takeSlot({
        ...{ policy, computeId, nowMs, allowed: allowedFor(context, policy) },
        untilMs: nowMs + OPERATION_DEADLINE_MS,
      });
      if (taken) fullUntilMs.delete(policy);
      else fullUntilMs.set(policy, nowMs + SLOT_RETRY_MS);
      return taken;
    },
    async release(context, computeId, policy) {
      await context.store.releaseSlot(policy, computeId);
      fullUntilMs.delete(policy);
    },
  };
}

/**
 * A hold, which is no policy, is one person's word on one compute: it is never too many. A restore may be of the whole fleet, so
 * the settings bound it.
 */
function allowedFor({ policies, fleet, disruption, clock }: Context, name: string): number {
  const index = policies.set.policies.findIndex((policy) => policy.name === name);
  const policy = policies.set.policies[index];
  if (name === RESTORE)
    return atOnceAllowed([...fleet.conclusions()].length, resolveDisruption(undefined, disruption).atOnce);
  if (!policy) return Number.MAX_SAFE_INTEGER;
  let selected = 0;
  for (const { compute } of fleet.conclusions()) if (policies.selects(index, compute, clock.now())) selected += 1;
  return atOnceAllowed(selected, resolveDisruption(policy.disruption, disruption).atOnce);
}
