import type { Compute } from './compute.ts';
import { type Heard, hear, statementsAt } from './heard.ts';
import type { PolicySet } from './policy.ts';
import { ruleOf } from './rules/rules.ts';
import { type ComputeMatcher, compileSelector } from './select.ts';
import type { Statement } from './statement.ts';

/** A policy set made ready to be asked often: selectors compiled, what each policy says at an instant kept. */
export interface CompiledPolicies {
  readonly set: PolicySet;
  /** True if a policy selects by branch: then the names and roles of branches must be known. */
  readonly selectsByBranch: boolean;
  /** Places of the policies that select the compute, however young it is. */
  selecting(compute: Compute): readonly number[];
  /** True if the policy at this place of the set selects the compute at this instant. */
  selects(policyIndex: number, compute: Compute, instantMs: number): boolean;
  /** What the policies that select the compute say at an instant. */
  heardBy(compute: Compute, instantMs: number): Heard;
  /** The next instant strictly after at which the policy at this place may say something else. */
  nextChangeAfter(policyIndex: number, instantMs: number): number | undefined;
  /** The latest instant at or before at which the policy at this place may have begun to say what it says. */
  lastChangeUntil(policyIndex: number, instantMs: number): number;
}

/** Computes that the same policies select. They hear the same, so it is put together once for all of them. */
interface Audience {
  policyIndexes: readonly number[];
  /** From this age on all of the policies select them. */
  oldestMinAgeMs: number;
  heard: Map<number, Heard>;
}

/** How many answers are kept: a reconcile of the fleet asks about now and about its next boundaries, again and again. */
const MOST_KEPT = 1024;
const MOST_KEPT_BY_AUDIENCE = 128;

/** Compiles a set once; the same set gives the same answers for ever. What is kept is bounded. */
export function compilePolicies(set: PolicySet): CompiledPolicies {
  const { policies } = set;
  const audienceOf = audiencesOf(set);
  const kept = new Map<number, readonly Statement[]>();
  const keptChanges = new Map<string, number | undefined>();
  const minAgeMs = (index: number) => policies[index]?.select.minAgeMs ?? Number.POSITIVE_INFINITY;
  return {
    set,
    selectsByBranch: policies.some(({ select }) => (select.branches ?? select.branchRoles) !== undefined),
    selecting: (compute) => audienceOf(compute, Number.POSITIVE_INFINITY).policyIndexes,
    selects: (policyIndex, compute, instantMs) =>
      instantMs - compute.createdAtMs >= minAgeMs(policyIndex) &&
      audienceOf(compute, Number.POSITIVE_INFINITY).policyIndexes.includes(policyIndex),
    heardBy(compute, instantMs) {
      const { heard, policyIndexes } = audienceOf(compute, instantMs - compute.createdAtMs);
      const known = heard.get(instantMs);
      if (known) return known;
      const said = remember(kept, MOST_KEPT, instantMs, () => statementsAt(policies, instantMs));
      return remember(heard, MOST_KEPT_BY_AUDIENCE, instantMs, () => hear(said, policyIndexes));
    },
    nextChangeAfter: (policyIndex, instantMs) =>
      remember(keptChanges, MOST_KEPT, `${policyIndex} ${instantMs}`, () => {
        const policy = policies[policyIndex];
        return policy && ruleOf(policy).nextChangeAfter(policy, instantMs);
      }),
    lastChangeUntil(policyIndex, instantMs) {
      const policy = policies[policyIndex];
      return policy ? ruleOf(policy).lastChangeUntil(policy, instantMs) : Number.NEGATIVE_INFINITY;
    },
  };
}

/** Names don't change with time, so a compute is matched once; only its age, in milliseconds, is asked again. */
function audiencesOf({ policies }: PolicySet): (compute: Compute, ageMs: number) => Audience {
  const matchers: ComputeMatcher[] = policies.map((policy) => compileSelector(policy.select));
  const everyIndex = [...matchers.keys()];
  const minAges = policies.map(({ select }) => select.minAgeMs);
  const audiences = new Map<string, Audience>();
  const matched = new WeakMap<Compute, Audience>();
  const audienceFor = (policyIndexes: readonly number[]): Audience =>
    remember(audiences, MOST_KEPT, policyIndexes.join(), () => ({
      policyIndexes,
      oldestMinAgeMs: Math.max(0, ...policyIndexes.map((index) => minAges[index] ?? 0)),
      heard: new Map(),
    }));
  const match = (compute: Compute): Audience => {
    const selecting = everyIndex.filter((index) => matchers[index]?.(compute, Number.POSITIVE_INFINITY));
    const audience = audienceFor(selecting);
    matched.set(compute, audience);
    return audience;
  };
  return (compute, ageMs) => {
    const audience = matched.get(compute) ?? match(compute);
    if (ageMs >= audience.oldestMinAgeMs) return audience;
    return audienceFor(audience.policyIndexes.filter((index) => ageMs >= (minAges[index] ?? 0)));
  };
}

function remember<K, V>(kept: Map<K, V>, most: number, key: K, compute: () => V): V {
  const known = kept.get(key);
  if (known !== undefined || kept.has(key)) return known as V;
  const value = compute();
  if (kept.size >= most) kept.clear();
  kept.set(key, value);
  return value;
}
