import type { Policy } from '../../domain/policy/policy.ts';
import type { Selector } from '../../domain/policy/policy-base.ts';
import { toGlob } from './glob-overlap.ts';
import { isProjectId } from './selector-overlap.ts';

/** False if the globs of projects of two policies differ in their first letters: asked for one policy and many others. */
export type Nearby = (a: Policy, b: Policy) => boolean;

/**
 * Sorts policies by how their globs of projects begin, so that in a set of many teams each policy is compared with those of
 * its own team only.
 */
export function createNearby(policies: readonly Policy[]): Nearby {
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

/** How the globs of projects begin; undefined if any project may be meant. */
function beginningsOf({ projects }: Selector): string[] | undefined {
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
