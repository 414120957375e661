import {
  leadsOf,
  MOST_STEPS_OF_DECISION,
  MOST_STEPS_OF_QUESTION,
  stepsOfLeads,
  stepsOfQuestion,
  stepsToAsk,
  widestCheck,
} from '../domain/decide/search-cost.ts';
import { ruleOf } from '../domain/policy/kinds/kinds.ts';
import type { Policy } from '../domain/policy/policy.ts';
import { calendarsOf } from '../domain/time/windows/date-filter.ts';
import { mostStepsOfOneCompute, stepsToSelect } from './one-compute.ts';

/**
 * What a set of policy files may be at most. Far above what people write, and low enough that a hostile file is refused
 * before it costs anything.
 */
export const POLICY_LIMITS = {
  /** Bytes of one file. */
  fileBytes: 512 * 1024,
  /** Lexical parts of one file: words, marks, line breaks. */
  tokens: 200_000,
  /** Files of one set. */
  files: 1000,
  /** Policies of one set, disabled ones included. */
  policies: 5000,
  /** Times of one policy, of all its windows. */
  timesOfPolicy: 1000,
  /** Steps, each about a microsecond, that a policy of ordinary windows takes; a set may have as many of these as of policies. */
  stepsOfOrdinaryPolicy: 500,
  /** Steps that it takes to ask all other policies of a set what they say. */
  stepsOfSet: 50_000,
  /** Steps that it takes to find the policies of a set that select a compute. */
  stepsToSelect: 5000,
  /** Zones of one set: what is known of one is read once, in about a millisecond. */
  zones: 100,
  /** Days of one trial. */
  trialDays: 1830,
  /** Different cron expressions of one set. */
  crons: 10_000,
  /** Days of the calendars of one set, counted once for each combination of calendars that windows name. */
  daysOfFilters: 1_000_000,
  /** Calendars of one file. */
  calendars: 100,
  /** Days of one calendar. */
  calendarDays: 20_000,
  /** Characters of all the iCalendar files of one set, each counted once. */
  icalCharacters: 4 * 1024 * 1024,
  /** Lists and mappings inside each other. */
  depth: 24,
  /** Problems that are reported of one file. */
  problemsPerFile: 100,
} as const;

/** Why a policy would take too long to ask, in a message; undefined if it would not. */
export function whyPolicyTooCostly(policy: Policy): string | undefined {
  const isAskedSoon = stepsOfQuestion(policy) <= MOST_STEPS_OF_QUESTION;
  if (isAskedSoon && stepsToAsk(policy) + stepsOfLeads([policy]) <= MOST_STEPS_OF_DECISION) return undefined;
  return 'so many times that follow each other so closely take too long to look through; write fewer, or fewer crons that fire often';
}

/** The same of all policies of a set together, each of which may be cheap. */
export function whySetTooCostly(policies: readonly Policy[]): string | undefined {
  const { stepsOfOrdinaryPolicy, stepsOfSet, crons, daysOfFilters, zones } = POLICY_LIMITS;
  const costly = policies.map(stepsToAsk).filter((steps) => steps > stepsOfOrdinaryPolicy);
  if (costly.reduce((sum, steps) => sum + steps, 0) > stepsOfSet) {
    return 'the times of all policies of the set take too long to look through; write fewer, or fewer crons that fire often';
  }
  const widest = widestCheck(policies);
  const stepsOf = (policy: Policy) => stepsToAsk(policy) + leadsOf(policy) * widest;
  if (mostStepsOfOneCompute(policies, stepsOf) > MOST_STEPS_OF_DECISION) {
    return 'the policies that may select one and the same compute take too long to decide; write fewer of them, or select by names that begin or end differently';
  }
  if (stepsToSelect(policies) > POLICY_LIMITS.stepsToSelect) {
    return 'the globs of all selectors take too long to match with a compute; write fewer, with fewer wildcards and without "?"';
  }
  const times = policies.flatMap((policy) => ruleOf(policy).times(policy));
  const expressions = times.flatMap((time) => {
    if (time.kind === 'cron') return [time.cron];
    return time.kind === 'cron-switch' ? [time.startCron, time.endCron] : [];
  });
  if (new Set(expressions).size > crons) return `more than ${crons} different cron expressions in the set`;
  if (new Set(times.flatMap((time) => ('zone' in time ? [time.zone] : []))).size > zones) {
    return `more than ${zones} different time zones in the set`;
  }
  const days = new Map(times.map(calendarsOf).map(({ key, days: count }) => [key, count]));
  if ([...days.values()].reduce((sum, count) => sum + count, 0) <= daysOfFilters) return undefined;
  return `windows name so many combinations of calendars that these have more than ${daysOfFilters} days`;
}
