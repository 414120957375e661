import type { Compute } from '../../domain/compute/compute.ts';
import type { Policy } from '../../domain/policy/policy.ts';
import { compileSelector, type Selection } from '../../domain/policy/select.ts';

/** What a policy selects. */
export interface Matches {
  policy: string;
  computes: readonly Compute[];
  /** How many it will select once they are old enough. */
  tooYoung: number;
  /** How many it may select: of these a name or role that it selects by is not known. */
  unknown: number;
}

export function matchesOf(policies: readonly Policy[], fleet: readonly Compute[], nowMs: number): Matches[] {
  return policies.map(({ name, select }) => {
    const matches = compileSelector(select);
    const selected = (selection: Selection, atMs: number) =>
      fleet.filter((compute) => matches(compute, atMs) === selection);
    const computes = selected('yes', nowMs);
    const tooYoung = selected('yes', Number.POSITIVE_INFINITY).length - computes.length;
    return { policy: name, computes, tooYoung, unknown: selected('unknown', nowMs).length };
  });
}
