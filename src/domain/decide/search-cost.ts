import type { CompiledPolicies } from '../policy/compiled-policies.ts';
import type { ScheduleWindow } from '../policy/kinds/schedule.ts';
import type { Policy } from '../policy/policy.ts';
import type { TimeSpec } from '../time/time-spec.ts';
import { firingsOfDay, haveCommonFiring } from '../time/windows/cron-times.ts';
import { mostMeetings } from '../time/windows/stretch.ts';
import { MOST_SEARCHES } from '../time/windows.ts';

const MINUTE_MS = 60_000;
/** Days of the dates of a window that are passed in the time of one step. */
const DAYS_OF_STEP = 50;

/**
 * At most so many steps a question about these windows takes: how often one of them is asked, where openings that touch each other
 * are followed. One step is one to two microseconds.
 */
function stepsToFollow(specs: readonly TimeSpec[]): number {
  const touching = specs.reduce((sum, spec) => sum + mostTouching(spec, specs.length === 1), 0);
  const days = specs.reduce((sum, spec) => sum + daysOf(spec), 0);
  const meetings = Math.min(mostMeetings(specs.length), 3 + touching);
  return meetings * specs.length + days / DAYS_OF_STEP;
}

/** How many openings of a window may be followed one after the other, before one ends with nothing to go on. */
function mostTouching(spec: TimeSpec, isAlone: boolean): number {
  if (spec.kind === 'cron') {
    const { count, longestPauseMinutes, shortestPauseMinutes } = firingsOfDay(spec.cron);
    if (longestPauseMinutes * MINUTE_MS <= spec.forMs) return 1;
    return isAlone && shortestPauseMinutes * MINUTE_MS > spec.forMs ? 1 : count;
  }
  if (spec.kind === 'cron-switch') {
    return haveCommonFiring(spec.startCron, spec.endCron) ? Number.POSITIVE_INFINITY : 1;
  }
  return 1;
}

function daysOf(spec: TimeSpec): number {
  if (!('dates' in spec)) return 0;
  const { only = [], except = [] } = spec.dates ?? {};
  return [...only, ...except].reduce((sum, { days }) => sum + days.length, 0);
}

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
