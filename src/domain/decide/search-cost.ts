import type { CompiledPolicies } from '../policy/compiled-policies.ts';
import type { ScheduleWindow } from '../policy/kinds/schedule.ts';
import type { Policy } from '../policy/policy.ts';
import { stepsToFollow } from '../time/windows/search-cost.ts';
import { MOST_SEARCHES } from '../time/windows.ts';

/** What a search for a boundary may cost after its first decision: a few milliseconds, of steps of one to two microseconds. */
export const MOST_STEPS = 2000;

/** Backwards, every policy is asked again for each decision, and rarely takes as much as is counted. */
export const MOST_STEPS_BACK = 3 * MOST_STEPS;

/** Of a decision itself, and of each policy in it that says what it said before. */
const STEPS_OF_DECISION = 10;

/** How many steps a decision takes of whose policies these have changed since the last one, at most. */
export function stepsToDecide(
  { set }: CompiledPolicies,
  selecting: readonly number[],
  hasChanged: (policyIndex: number) => boolean,
): number {
  const changed = selecting.filter(hasChanged).map((index) => stepsOf(set.policies[index]));
  return changed.reduce((sum, steps) => sum + steps, STEPS_OF_DECISION + selecting.length);
}

const knownSteps = new WeakMap<Policy, number>();

/** What it takes at most to ask a policy what it says, and until when. */
function stepsOf(policy: Policy | undefined): number {
  if (!policy) return 0;
  const known = knownSteps.get(policy);
  if (known !== undefined) return known;
  const steps = stepsOfTimes(policy);
  knownSteps.set(policy, steps);
  return steps;
}

function stepsOfTimes(policy: Policy): number {
  if (policy.kind === 'schedule') return policy.windows.reduce((sum, window) => sum + stepsOfWindow(window), 1);
  if (!('at' in policy)) return 1;
  // A freeze also says when it ends.
  return (policy.kind === 'freeze' ? 1 + MOST_SEARCHES : 2) * stepsToFollow(policy.at);
}

/** Since when it is open, and until when; the same of its absolute times alone, and of when it is to be ready. */
function stepsOfWindow({ at, readyLeadMs }: ScheduleWindow): number {
  const steps = stepsToFollow(at);
  const absolute = at.filter(({ kind }) => kind === 'interval');
  return 2 * steps + (absolute.length > 0 ? stepsToFollow(absolute) : 0) + (readyLeadMs === undefined ? 0 : 2 * steps);
}
