import type { Compute } from './compute.ts';
import { compareOpinions, type Opinion } from './opinion.ts';
import type { Policy, PolicySet } from './policy.ts';
import { RULES } from './rules/rules.ts';
import { type ComputeMatcher, compileSelector } from './select.ts';

/** A policy set made ready to be asked often: selectors compiled, what each policy says at an instant kept. */
export interface CompiledPolicies {
  readonly set: PolicySet;
  /** True if a policy selects by branch: then the names and roles of branches must be known. */
  readonly selectsByBranch: boolean;
  /** True if the policy at this place of the set selects the compute at this instant. */
  selects(policyIndex: number, compute: Compute, instantMs: number): boolean;
  /** What all policies say at an instant, the first to be heard first. */
  opinionsAt(instantMs: number): readonly Opinion[];
  /** The next instant strictly after at which the policy at this place may say something else. */
  nextChangeAfter(policyIndex: number, instantMs: number): number | undefined;
}

/** How many answers are kept: a reconcile of the fleet asks about now and about its next boundaries, again and again. */
const MOST_KEPT = 1024;

/** Compiles a set once; the same set gives the same answers for ever. What is kept is bounded. */
export function compilePolicies(set: PolicySet): CompiledPolicies {
  const matchers: ComputeMatcher[] = set.policies.map((policy) => compileSelector(policy.select));
  // Names don't change with time, so a compute is matched once; only its age is asked again.
  const matched = new WeakMap<Compute, readonly boolean[]>();
  const matchesOf = (compute: Compute): readonly boolean[] => {
    const known = matched.get(compute);
    if (known) return known;
    const matches = matchers.map((matches) => matches(compute, Number.POSITIVE_INFINITY));
    matched.set(compute, matches);
    return matches;
  };
  const kept = new Map<number, readonly Opinion[]>();
  const keptChanges = new Map<string, number | undefined>();
  return {
    set,
    selectsByBranch: set.policies.some(({ select }) => (select.branches ?? select.branchRoles) !== undefined),
    selects(policyIndex, compute, instantMs) {
      const minAgeMs = set.policies[policyIndex]?.select.minAgeMs ?? Number.POSITIVE_INFINITY;
      return instantMs - compute.createdAtMs >= minAgeMs && matchesOf(compute)[policyIndex] === true;
    },
    opinionsAt: (instantMs) => remember(kept, instantMs, () => allOpinionsAt(set.policies, instantMs)),
    nextChangeAfter: (policyIndex, instantMs) =>
      remember(keptChanges, `${policyIndex} ${instantMs}`, () => {
        const policy = set.policies[policyIndex];
        return policy && RULES[policy.kind].nextChangeAfter(policy, instantMs);
      }),
  };
}

function allOpinionsAt(policies: readonly Policy[], instantMs: number): readonly Opinion[] {
  return policies
    .flatMap((policy, index) => RULES[policy.kind].opinionsAt(policy, index, instantMs))
    .sort(compareOpinions);
}

function remember<K, V>(kept: Map<K, V>, key: K, compute: () => V): V {
  const known = kept.get(key);
  if (known !== undefined || kept.has(key)) return known as V;
  const value = compute();
  if (kept.size >= MOST_KEPT) kept.clear();
  kept.set(key, value);
  return value;
}
