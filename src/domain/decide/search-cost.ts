import type { CompiledPolicies } from '../policy/compiled-policies.ts';
import type { ScheduleWindow } from '../policy/kinds/schedule.ts';
import type { Policy } from '../policy/policy.ts';
import type { TimeSpec, WeeklyWindow } from '../time/time-spec.ts';
import { firingsOfDay, haveCommonFiring } from '../time/windows/cron-times.ts';
import { mostMeetings, mostSearches } from '../time/windows/stretch.ts';

const MINUTE_MS = 60_000;
const DAY_MINUTES = 1440;

/** What asking one window takes, in steps; measured. */
export const STEPS_OF_ASKING: Record<TimeSpec['kind'], number> = {
  ...{ always: 0.1, interval: 0.1, weekly: 0.3, cron: 1, 'cron-switch': 2 },
};
/** What looking through the dates of one window takes at most. */
const STEPS_OF_DATES = 30;

/**
 * At most so many steps a question about these windows takes, where openings that touch each other are followed. One step is about a
 * microsecond.
 */
export function stepsToFollow(specs: readonly TimeSpec[]): number {
  const touching = specs.reduce((sum, spec) => sum + mostTouching(spec, specs.length === 1), 0);
  const meetings = Math.min(mostMeetings(specs.length), 3 + touching);
  const dated = specs.filter((spec) => 'dates' in spec && spec.dates).length;
  return meetings * specs.reduce((sum, { kind }) => sum + STEPS_OF_ASKING[kind], 0) + dated * STEPS_OF_DATES;
}

/** How many openings of a window may be followed one after the other, before one ends with nothing to go on. */
function mostTouching(spec: TimeSpec, isAlone: boolean): number {
  if (spec.kind === 'weekly') return isAlone && !touchesItself(spec) ? 1 : Number.POSITIVE_INFINITY;
  if (spec.kind === 'cron') {
    const { count, firstMinute, lastMinute, longestPauseMinutes, shortestPauseMinutes } = firingsOfDay(spec.cron);
    if (isAlone && shortestPauseMinutes * MINUTE_MS > spec.forMs) return 1;
    // One after the other on a day on which a clock changes; else the day is one.
    const nightMinutes = firstMinute + DAY_MINUTES - lastMinute;
    const isOnePerDay = longestPauseMinutes * MINUTE_MS <= spec.forMs;
    return isOnePerDay && !(isAlone && nightMinutes * MINUTE_MS > spec.forMs) ? Number.POSITIVE_INFINITY : count;
  }
  if (spec.kind === 'cron-switch') {
    return haveCommonFiring(spec.startCron, spec.endCron) ? Number.POSITIVE_INFINITY : 1;
  }
  return 1;
}

/** Whether one opening may reach the next. */
function touchesItself({ startMinute, endMinute, endDayOffset }: WeeklyWindow): boolean {
  return endDayOffset * DAY_MINUTES + endMinute - startMinute >= DAY_MINUTES;
}

/** What a search for a boundary may cost after its first decision, in steps of about a microsecond. */
export const MOST_STEPS = 2000;

/** The first change is looked at if its decision alone takes no more: as any policy by itself does that validates. */
export const MOST_STEPS_AT_ONCE = 10_000;

/** Backwards, every policy is asked again for each decision, the first included. */
export const MOST_STEPS_BACK = 2 * MOST_STEPS;

/** Of a decision itself, and of each policy in it that says what it said before. */
const STEPS_OF_DECISION = 10;

/** Of a policy that is asked, whatever its times are. */
const STEPS_OF_POLICY = 5;

/** How many steps a decision takes of whose policies these have changed since the last one, at most. */
export function stepsToDecide(
  { set }: CompiledPolicies,
  selecting: readonly number[],
  hasChanged: (policyIndex: number) => boolean,
): number {
  const changed = selecting.flatMap((index) => (hasChanged(index) ? (set.policies[index] ?? []) : []));
  return changed.reduce((sum, policy) => sum + stepsToAsk(policy), STEPS_OF_DECISION + selecting.length);
}

const knownSteps = new WeakMap<Policy, number>();

/** What it takes at most to ask a policy what it says, and until when. */
export function stepsToAsk(policy: Policy): number {
  const known = knownSteps.get(policy) ?? STEPS_OF_POLICY + stepsOfTimes(policy);
  knownSteps.set(policy, known);
  return known;
}

function stepsOfTimes(policy: Policy): number {
  if (policy.kind === 'schedule') return policy.windows.reduce((sum, window) => sum + stepsOfWindow(window), 0);
  if (!('at' in policy)) return 0;
  // A freeze also says when it ends.
  return (policy.kind === 'freeze' ? 1 + mostSearches(policy.at.length) : 2) * stepsToFollow(policy.at);
}

/** Since when it is open, and until when; the same of its absolute times alone, and of when it is to be ready. */
function stepsOfWindow({ at, readyLeadMs }: ScheduleWindow): number {
  const absolute = at.filter(({ kind }) => kind === 'interval');
  const questions = 2 + (readyLeadMs === undefined ? 0 : 1 + mostSearches(at.length));
  return questions * stepsToFollow(at) + (absolute.length > 0 ? stepsToFollow(absolute) : 0);
}
