import type { Compute } from '../../domain/compute/compute.ts';
import type { Policy } from '../../domain/policy/policy.ts';
import { AT_ANY_AGE, compileSelector, splitGlobs } from '../../domain/policy/select.ts';
import type { SelectorKeys } from '../../domain/policy/selector.ts';
import { ascending, lowerBound } from '../../domain/sorted.ts';
import { toGlob } from './glob-overlap.ts';
import { isProjectId, selectorsMeet } from './selector-overlap.ts';
import type { StepLimit } from './step-limit.ts';

/** Tells which policies select the same computes: exactly if the fleet is known, otherwise by their selectors. */
export interface Overlap {
  /** True if both may select the same compute. Fast for one `a` and many `b`. */
  mayMeet(a: Policy, b: Policy): boolean;
  /** A compute that both select; undefined if there is none, or without a fleet. */
  shared(a: Policy, b: Policy): Compute | undefined;
  /** The computes that a policy selects, whatever their age; undefined without a fleet. */
  computesOf(policy: Policy): readonly Compute[] | undefined;
  /** The distinct sets of policies that select the computes of a policy; undefined without a fleet. */
  combinationsWith(policy: Policy): readonly (readonly Policy[])[] | undefined;
}

/** Finds overlaps by the selectors alone. */
export function overlapOfSelectors(policies: readonly Policy[], limit: StepLimit): Overlap {
  const areNear = createNearness(policies);
  return {
    mayMeet: (a, b) => areNear(a, b) && selectorsMeet(a.select, b.select, limit),
    shared: () => undefined,
    computesOf: () => undefined,
    combinationsWith: () => undefined,
  };
}

/** Finds overlaps by the computes of the fleet; one that a selector may match counts as selected. */
export function overlapInFleet(fleet: readonly Compute[], policies: readonly Policy[]): Overlap {
  const selected = new Map<Policy, ReadonlySet<Compute>>();
  const policiesOf = new Map<Compute, Policy[]>();
  for (const policy of policies) {
    const matches = compileSelector(policy.select);
    const computes = fleet.filter((compute) => matches(compute, AT_ANY_AGE) !== 'no');
    selected.set(policy, new Set(computes));
    for (const compute of computes) policiesOf.set(compute, [...(policiesOf.get(compute) ?? []), policy]);
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
    combinationsWith(policy) {
      const combinations = new Map<string, Policy[]>();
      for (const compute of computesOf(policy)) {
        const combination = policiesOf.get(compute) ?? [];
        combinations.set(combination.map(({ name }) => name).join(' '), combination);
      }
      return [...combinations.values()];
    },
  };
}

/**
 * Creates a check that is false if the project globs of two policies certainly match no common project: no prefix of one policy begins with a
 * prefix of the other. For each new `a` it searches an index of prefixes once. So in a set of many teams, each policy is compared only with the
 * policies of its team.
 */
function createNearness(policies: readonly Policy[]): (a: Policy, b: Policy) => boolean {
  const indexes = new Map(policies.map((policy, index) => [policy, index]));
  const prefixes = policies.map(({ select }) => projectPrefixes(select));
  const all = [...policies.keys()];
  const anywhere = all.filter((index) => prefixes[index] === undefined);
  const byPrefix = new Map<string, number[]>();
  for (const index of all) {
    for (const prefix of prefixes[index] ?? []) {
      const same = byPrefix.get(prefix);
      if (same) same.push(index);
      else byPrefix.set(prefix, [index]);
    }
  }
  const sorted = [...byPrefix.keys()].sort(ascending);
  /** For each policy, the last round in which it was marked as near. */
  const markedIn = new Int32Array(policies.length);
  let round = 0;
  let current: Policy | undefined;

  function mark(near: readonly number[]): void {
    for (const index of near) markedIn[index] = round;
  }

  function markNear(policy: Policy): void {
    current = policy;
    round += 1;
    const ofPolicy = prefixes[indexes.get(policy) ?? -1];
    mark(ofPolicy ? anywhere : all);
    for (const prefix of ofPolicy ?? []) {
      for (let length = 1; length < prefix.length; length += 1) {
        mark(byPrefix.get(prefix.slice(0, length)) ?? []);
      }
      for (let at = lowerBound(sorted, prefix); sorted[at]?.startsWith(prefix); at += 1) {
        mark(byPrefix.get(sorted[at] ?? '') ?? []);
      }
    }
  }

  return (a, b) => {
    if (a !== current) markNear(a);
    return markedIn[indexes.get(b) ?? -1] === round;
  };
}

/** The prefixes of project globs; undefined if any project may match. */
function projectPrefixes({ projects }: SelectorKeys): string[] | undefined {
  const prefixes =
    projects && splitGlobs(projects).includes.map((glob) => (isProjectId(glob) ? '' : toGlob(glob).prefix));
  return prefixes?.includes('') ? undefined : prefixes;
}
