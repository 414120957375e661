import { MOST_STEPS_AT_ONCE, stepsToAsk } from '../domain/decide/search-cost.ts';
import { ruleOf } from '../domain/policy/kinds/kinds.ts';
import type { Policy } from '../domain/policy/policy.ts';
import { calendarsOf } from '../domain/time/windows/date-filter.ts';
import { POLICY_LIMITS } from './limits.ts';

/** Why a policy would take too long to ask, in a message; undefined if it would not. */
export function whyPolicyTooCostly(policy: Policy): string | undefined {
  if (stepsToAsk(policy) <= MOST_STEPS_AT_ONCE) return undefined;
  return 'so many times that follow each other so closely take too long to look through; write fewer, or fewer crons that fire often';
}

/** The same of all policies of a set together, each of which may be cheap. */
export function whySetTooCostly(policies: readonly Policy[]): string | undefined {
  const { stepsOfOrdinaryPolicy, stepsOfSet, crons, daysOfFilters } = POLICY_LIMITS;
  const costly = policies.map(stepsToAsk).filter((steps) => steps > stepsOfOrdinaryPolicy);
  if (costly.reduce((sum, steps) => sum + steps, 0) > stepsOfSet) {
    return 'the times of all policies of the set take too long to look through; write fewer, or fewer crons that fire often';
  }
  const times = policies.flatMap((policy) => ruleOf(policy).times(policy));
  const expressions = times.flatMap((time) => {
    if (time.kind === 'cron') return [time.cron];
    return time.kind === 'cron-switch' ? [time.startCron, time.endCron] : [];
  });
  if (new Set(expressions).size > crons) return `more than ${crons} different cron expressions in the set`;
  const days = new Map(times.map(calendarsOf).map(({ key, days: count }) => [key, count]));
  if ([...days.values()].reduce((sum, count) => sum + count, 0) <= daysOfFilters) return undefined;
  return `windows name so many combinations of calendars that these have more than ${daysOfFilters} days`;
}
