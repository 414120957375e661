import type { Compute } from '../../domain/compute/compute.ts';
import type { Policy } from '../../domain/policy/policy.ts';
import { compileSelector } from '../../domain/policy/select.ts';
import type { SelectorKeys } from '../../domain/policy/selector.ts';
import type { Budget } from './budget.ts';
import { toGlob } from './glob-overlap.ts';
import { isProjectId, selectorsMeet } from './selector-overlap.ts';

/** Policies that concern the same computes: as far as their selectors tell, or exactly where the fleet is known. */
export interface Overlap {
  /** True if some compute may be selected by both. Cheapest if one is asked about many: that one first. */
  mayMeet(a: Policy, b: Policy): boolean;
  /** A compute that both select; undefined if there is none, or the fleet is not known. */
  shared(a: Policy, b: Policy): Compute | undefined;
  /** The computes that a policy selects, however young; undefined if the fleet is unknown. */
  computesOf(policy: Policy): readonly Compute[] | undefined;
  /** The different sets of policies that select the computes of a policy; undefined if the fleet is not known. */
  companiesOf(policy: Policy): readonly (readonly Policy[])[] | undefined;
}

/** From the selectors alone: what they don't exclude may overlap. */
export function overlapOfSelectors(policies: readonly Policy[], budget: Budget): Overlap {
  const areNear = createNearby(policies);
  return {
    mayMeet: (a, b) => areNear(a, b) && selectorsMeet(a.select, b.select, budget),
    shared: () => undefined,
    computesOf: () => undefined,
    companiesOf: () => undefined,
  };
}

/** From the existing computes; where a selection is unknown, it may overlap. */
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

/** False if the globs of projects of two policies differ in their first letters: asked for one policy and many others. */
type Nearby = (a: Policy, b: Policy) => boolean;

/**
 * Sorts policies by how their globs of projects begin, so that in a set of many teams each policy is compared with those of
 * its own team only.
 */
function createNearby(policies: readonly Policy[]): Nearby {
  const places = new Map(policies.map((policy, index) => [policy, index]));
  const beginnings = policies.map(({ select }) => beginningsOf(select));
  const all = [...policies.keys()];
  const anywhere = all.filter((index) => beginnings[index] === undefined);
  const byBeginning = new Map<string, number[]>();
  for (const index of all) {
    for (const beginning of beginnings[index] ?? []) {
      const known = byBeginning.get(beginning);
      if (known) known.push(index);
      else byBeginning.set(beginning, [index]);
    }
  }
  const sorted = [...byBeginning.keys()].sort();
  const markedIn = new Int32Array(policies.length);
  let round = 0;
  let current: Policy | undefined;

  function mark(indexes: readonly number[]): void {
    for (const index of indexes) markedIn[index] = round;
  }

  function markNear(policy: Policy): void {
    current = policy;
    round += 1;
    const own = beginnings[places.get(policy) ?? -1];
    mark(own ? anywhere : all);
    for (const beginning of own ?? []) {
      for (let length = 1; length < beginning.length; length += 1) {
        mark(byBeginning.get(beginning.slice(0, length)) ?? []);
      }
      for (let at = firstFrom(sorted, beginning); sorted[at]?.startsWith(beginning); at += 1) {
        mark(byBeginning.get(sorted[at] ?? '') ?? []);
      }
    }
  }

  return (a, b) => {
    if (a !== current) markNear(a);
    return markedIn[places.get(b) ?? -1] === round;
  };
}

/** The prefixes of project globs; undefined if any project may match. */
function beginningsOf({ projects }: SelectorKeys): string[] | undefined {
  const includes = projects?.filter((glob) => !glob.startsWith('!'));
  const beginnings = includes?.map((glob) => (isProjectId(glob) ? '' : toGlob(glob).prefix));
  return beginnings?.includes('') ? undefined : beginnings;
}

function firstFrom(sorted: readonly string[], text: string): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sorted[middle] ?? '') < text) low = middle + 1;
    else high = middle;
  }
  return low;
}
