import type { Compute } from '../../domain/compute.ts';
import type { Policy } from '../../domain/policy.ts';
import { compileSelector } from '../../domain/select.ts';

/** What a policy selects. */
export interface Matches {
  policy: string;
  computes: readonly Compute[];
  /** How many it will select once they are old enough. */
  tooYoung: number;
}

export function matchesOf(policies: readonly Policy[], fleet: readonly Compute[], nowMs: number): Matches[] {
  return policies.map(({ name, select }) => {
    const matches = compileSelector(select);
    const meant = fleet.filter((compute) => matches(compute, Number.POSITIVE_INFINITY));
    const computes = meant.filter((compute) => matches(compute, nowMs));
    return { policy: name, computes, tooYoung: meant.length - computes.length };
  });
}
