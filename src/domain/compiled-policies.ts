import type { Compute } from './compute.ts';
import { compareOpinions } from './opinion.ts';
import type { Policy, PolicySet } from './policy.ts';
import { ruleOf } from './rules/rules.ts';
import { type ComputeMatcher, compileSelector } from './select.ts';
import type { Statement, Statements } from './statement.ts';

/** A policy set made ready to be asked often: selectors compiled, what each policy says at an instant kept. */
export interface CompiledPolicies {
  readonly set: PolicySet;
  /** True if a policy selects by branch: then the names and roles of branches must be known. */
  readonly selectsByBranch: boolean;
  /** True if the policy at this place of the set selects the compute at this instant. */
  selects(policyIndex: number, compute: Compute, instantMs: number): boolean;
  /** What all policies say at an instant, opinions in the order in which they are heard. */
  statementsAt(instantMs: number): Statements;
  /** The next instant strictly after at which the policy at this place may say something else. */
  nextChangeAfter(policyIndex: number, instantMs: number): number | undefined;
  /** The latest instant at or before at which the policy at this place may have begun to say what it says. */
  lastChangeUntil(policyIndex: number, instantMs: number): number;
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
  const kept = new Map<number, Statements>();
  const keptChanges = new Map<string, number | undefined>();
  return {
    set,
    selectsByBranch: set.policies.some(({ select }) => (select.branches ?? select.branchRoles) !== undefined),
    selects(policyIndex, compute, instantMs) {
      const minAgeMs = set.policies[policyIndex]?.select.minAgeMs ?? Number.POSITIVE_INFINITY;
      return instantMs - compute.createdAtMs >= minAgeMs && matchesOf(compute)[policyIndex] === true;
    },
    statementsAt: (instantMs) => remember(kept, instantMs, () => allStatementsAt(set.policies, instantMs)),
    nextChangeAfter: (policyIndex, instantMs) =>
      remember(keptChanges, `${policyIndex} ${instantMs}`, () => {
        const policy = set.policies[policyIndex];
        return policy && ruleOf(policy).nextChangeAfter(policy, instantMs);
      }),
    lastChangeUntil(policyIndex, instantMs) {
      const policy = set.policies[policyIndex];
      return policy ? ruleOf(policy).lastChangeUntil(policy, instantMs) : Number.NEGATIVE_INFINITY;
    },
  };
}

function allStatementsAt(policies: readonly Policy[], instantMs: number): Statements {
  const all = policies.flatMap((policy, index) => ruleOf(policy).statementsAt(policy, index, instantMs));
  const said = <S extends Statement['says']>(says: S) =>
    all.filter((statement): statement is Extract<Statement, { says: S }> => statement.says === says);
  return {
    opinions: said('values').sort(compareOpinions),
    bounds: said('bounds'),
    needs: said('need'),
    restarts: said('restart'),
    freezes: said('freeze'),
  };
}

function remember<K, V>(kept: Map<K, V>, key: K, compute: () => V): V {
  const known = kept.get(key);
  if (known !== undefined || kept.has(key)) return known as V;
  const value = compute();
  if (kept.size >= MOST_KEPT) kept.clear();
  kept.set(key, value);
  return value;
}
