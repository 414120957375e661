import type { EvaluatedCompute } from '../../domain/evaluate/evaluate.ts';
import { RESTORE } from '../../domain/overrides/restore.ts';
import { atOnceAllowed } from '../../domain/plan/gates/disruption.ts';
import type { Action } from '../../domain/plan/plan.ts';
import { resolveDisruption } from '../../domain/policy/disruption.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Store } from '../../ports/store.ts';
import type { Fleet } from '../fleet/fleet.ts';
import type { CompiledRules } from '../rules.ts';
import { OPERATION_DEADLINE_MS } from './record.ts';

/** After a refusal a policy counts as full for so long, in milliseconds; then it is tried again. */
export const SLOT_RETRY_MS = 5_000;

const UNLIMITED = Number.MAX_SAFE_INTEGER;

/** How much is disturbed at once is up to these rules. */
type SlotRules = Pick<CompiledRules, 'policies' | 'disruption'>;

/** How many computes a policy selects, and which policies have no room for another restart: of this daemon. */
export interface Slots {
  /** True if a policy had no room a moment ago. */
  isFull(policy: string): boolean;
  /**
   * True if the compute may be disturbed now for this policy, over all daemons. Holds until released, or its deadline. What is urgent
   * waits for no other, but others wait for it.
   */
  take(rules: SlotRules, computeId: string, action: Action): Promise<boolean>;
  release(computeId: string, policy: string): Promise<void>;
}

interface SlotDeps {
  store: Pick<Store, 'takeSlot' | 'releaseSlot'>;
  fleet: Pick<Fleet, 'evaluatedComputes'>;
  clock: Pick<Clock, 'now'>;
}

export function createSlots({ store, fleet, clock }: SlotDeps): Slots {
  const fullUntilMs = new Map<string, number>();
  return {
    isFull: (policy) => (fullUntilMs.get(policy) ?? 0) > clock.now(),
    async take(rules, computeId, { policy, urgent = false }) {
      const nowMs = clock.now();
      const allowed = urgent ? UNLIMITED : allowedFor(rules, [...fleet.evaluatedComputes()], policy, nowMs);
      const untilMs = nowMs + OPERATION_DEADLINE_MS;
      const isTaken = await store.takeSlot({ policy, computeId, nowMs, allowed, untilMs });
      if (urgent) return isTaken;
      if (isTaken) fullUntilMs.delete(policy);
      else fullUntilMs.set(policy, nowMs + SLOT_RETRY_MS);
      return isTaken;
    },
    async release(computeId, policy) {
      await store.releaseSlot(policy, computeId);
      fullUntilMs.delete(policy);
    },
  };
}

/**
 * A hold, which is no policy, is one person's word on one compute: it is never too many. A restore may be of the whole fleet, so
 * the settings bound it.
 */
function allowedFor(
  { policies, disruption }: SlotRules,
  fleet: readonly EvaluatedCompute[],
  name: string,
  nowMs: number,
): number {
  const index = policies.set.policies.findIndex((policy) => policy.name === name);
  const policy = policies.set.policies[index];
  if (name === RESTORE) return atOnceAllowed(fleet.length, resolveDisruption(undefined, disruption).atOnce);
  if (!policy) return UNLIMITED;
  const selected = fleet.filter(({ compute }) => policies.selects(index, compute, nowMs)).length;
  return atOnceAllowed(selected, resolveDisruption(policy.disruption, disruption).atOnce);
}
