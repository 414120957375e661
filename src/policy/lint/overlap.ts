import type { Compute } from '../../domain/compute/compute.ts';
import type { Policy } from '../../domain/policy/policy.ts';
import { compileSelector } from '../../domain/policy/select.ts';
import type { Budget } from './budget.ts';
import { createNearby } from './nearby.ts';
import { selectorsMeet } from './selector-overlap.ts';

/** Which policies concern the same computes: as far as their selectors tell, or exactly where the fleet is known. */
export interface Overlap {
  /** True if some compute may be selected by both. Cheapest if one is asked about many: that one first. */
  mayMeet(a: Policy, b: Policy): boolean;
  /** A compute that both select; undefined if there is none, or the fleet is not known. */
  shared(a: Policy, b: Policy): Compute | undefined;
  /** What a policy selects, however young; undefined if the fleet is not known. */
  computesOf(policy: Policy): readonly Compute[] | undefined;
  /** The different sets of policies that select the computes of a policy; undefined if the fleet is not known. */
  companiesOf(policy: Policy): readonly (readonly Policy[])[] | undefined;
}

/** From the selectors alone: what they don't rule out may be. */
export function overlapOfSelectors(policies: readonly Policy[], budget: Budget): Overlap {
  const areNear = createNearby(policies);
  return {
    mayMeet: (a, b) => areNear(a, b) && selectorsMeet(a.select, b.select, budget),
    shared: () => undefined,
    computesOf: () => undefined,
    companiesOf: () => undefined,
  };
}

/** From the computes that there are; where it is not known whether a policy selects one, it may. */
export function overlapInFleet(fleet: readonly Compute[], policies: readonly Policy[]): Overlap {
  const selected = new Map<Policy, ReadonlySet<Compute>>();
  const companies = new Map<Compute, Policy[]>();
  for (const policy of policies) {
    const matches = compileSelector(policy.select);
    const computes = fleet.filter((compute) => matches(compute, Number.POSITIVE_INFINITY) !== 'no');
    selected.set(policy, new Set(computes));
    for (const compute of computes) companies.set(compute, [...(companies.get(compute) ?? []), policy]);
  }
  const computesOf = (policy: Policy) => [...(selected.get(policy) ?? [])];
  const shared = (a: Policy, b: Policy): Compute | undefined => {
    const one = selected.get(a) ?? new Set();
    const other = selected.get(b) ?? new Set();
    const [fewer, more] = one.size < other.size ? [one, other] : [other, one];
    for (const compute of fewer) if (more.has(compute)) return compute;
    return undefined;
  };
  return {
    shared,
    computesOf,
    mayMeet: (a, b) => shared(a, b) !== undefined,
    companiesOf(policy) {
      const different = new Map<string, Policy[]>();
      for (const compute of computesOf(policy)) {
        const company = companies.get(compute) ?? [];
        different.set(company.map(({ name }) => name).join(' '), company);
      }
      return [...different.values()];
    },
  };
}
