import type { Compute } from '../compute/compute.ts';
import { atOnceAllowed } from '../plan/gates/at-once.ts';
import type { Action } from '../plan/plan.ts';
import type { CompiledPolicies } from '../policy/compiled-policies.ts';
import type { ComputeRecord } from '../records/compute-record.ts';

export interface CountedCompute {
  compute: Compute;
  record: ComputeRecord;
}

/** How many computes each policy has being restarted. */
export interface RestartCount {
  /** True if the policy may not disturb this compute besides those that it disturbs already. */
  isFull(computeId: string, policy: string, share: number): boolean;
  /** Counts what would be done; a change that disconnects nobody takes no place. */
  add(computeId: string, action: Action): void;
}

/** Begins with the computes on which operations of ebb are under way. */
export function countRestarts(
  policies: CompiledPolicies,
  nowMs: number,
  known: readonly CountedCompute[],
): RestartCount {
  const restarting = new Map<string, Set<string>>();
  const selected = new Map<string, number>();
  const place = (policy: string, computeId: string) => {
    restarting.set(policy, (restarting.get(policy) ?? new Set()).add(computeId));
  };
  for (const { compute, record } of known) {
    for (const { policy } of record.openOperations) if (policy !== undefined) place(policy, compute.computeId);
  }
  const selectedBy = (name: string): number | undefined => {
    const index = policies.set.policies.findIndex((policy) => policy.name === name);
    if (index < 0) return undefined;
    const many = selected.get(name) ?? known.filter(({ compute }) => policies.selects(index, compute, nowMs)).length;
    selected.set(name, many);
    return many;
  };
  return {
    isFull(computeId, policy, share) {
      const held = restarting.get(policy);
      const many = selectedBy(policy);
      // A hold is no policy: one person's word on one compute is never too many.
      if (held === undefined || many === undefined || held.has(computeId)) return false;
      return held.size >= atOnceAllowed(many, share);
    },
    add(computeId, { policy, disconnects }) {
      if (disconnects) place(policy, computeId);
    },
  };
}
