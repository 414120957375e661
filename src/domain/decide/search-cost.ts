import type { CompiledPolicies } from '../policy/compiled-policies.ts';
import { asKind, ruleOf } from '../policy/kinds/kinds.ts';
import type { Policy } from '../policy/policy.ts';
import { leadsOf as leadsOfWindow, type ScheduleWindow } from '../policy/schedule-window.ts';
import type { TimeSpec } from '../time/time-spec.ts';
import { MINUTE_MS } from '../time/units.ts';
import { firingsOfDay, haveCommonFiring } from '../time/windows/cron-times.ts';
import { mostPassed } from '../time/windows/date-filter.ts';
import { mostMeetings, mostSearches } from '../time/windows/stretch.ts';
import { lengthMinutes } from '../time/windows/weekly.ts';

const DAY_MINUTES = 1440;
/** By so much clocks are set forward or back at most, with much to spare. */
const MOST_CLOCK_CHANGE_MINUTES = 180;

/** The measured cost of asking one window, in steps. A weekly window of several days may have begun on any of them. */
export function stepsOfAsking(spec: TimeSpec): number {
  if (spec.kind === 'weekly') return 0.6 + 0.1 * spec.endDayOffset;
  if ('dates' in spec && spec.dates) return STEPS_OF_ASKING[spec.kind] + STEPS_OF_CRON_DATES;
  return STEPS_OF_ASKING[spec.kind];
}
const STEPS_OF_ASKING = { always: 0.1, interval: 0.1, cron: 0.75, 'cron-switch': 1 } as const;

/** Dates on which an expression fires and those that calendars allow are compared for up to eight years. */
const STEPS_OF_CRON_DATES = 4;

/** Of each day that calendars leave out, one after the other. */
const STEPS_OF_DAY = 0.3;

/** The most steps of a question about these windows, where openings that touch each other are followed. One step is about a microsecond. */
export function stepsToFollow(specs: readonly TimeSpec[]): number {
  const meetings = Math.min(mostMeetings(specs.length), 3 + mostTouching(specs));
  const days = specs.reduce((sum, spec) => sum + ('dates' in spec ? mostPassed(spec.dates) : 0), 0);
  return meetings * stepsToCheck(specs) + days * STEPS_OF_DAY;
}

/** The same of the costliest question: the next change of the windows, which goes on where one search ends. */
export function stepsToFindChange(specs: readonly TimeSpec[]): number {
  return mostSearches(specs.length) * stepsToFollow(specs);
}

function stepsToCheck(specs: readonly TimeSpec[]): number {
  return specs.reduce((sum, spec) => sum + stepsOfAsking(spec), 0);
}

/** The most openings that may follow one another before one ends without a successor. */
function mostTouching(specs: readonly TimeSpec[]): number {
  const [first] = specs;
  if (first && specs.length === 1 && !mayTouchItself(first)) return 1;
  const recurring = specs.map(ofDay).filter((each) => each !== undefined);
  const openMinutes = recurring.reduce((sum, { minutes }) => sum + minutes, 0);
  // A window that is not open for a whole day ends within one.
  if (openMinutes >= DAY_MINUTES - MOST_CLOCK_CHANGE_MINUTES) return Number.POSITIVE_INFINITY;
  const openings = recurring.reduce((sum, { count }) => sum + count + 1, 0);
  const others = specs.length - recurring.length;
  return openings * (1 + others) + others;
}

/** The most openings of a recurring window in 24 hours, and its longest open time in them. */
function ofDay(spec: TimeSpec): { count: number; minutes: number } | undefined {
  if (spec.kind === 'weekly') return { count: 1, minutes: lengthMinutes(spec) };
  if (spec.kind === 'cron-switch') return { count: Number.POSITIVE_INFINITY, minutes: Number.POSITIVE_INFINITY };
  if (spec.kind !== 'cron') return undefined;
  const { count } = firingsOfDay(spec.cron);
  return { count, minutes: (count * spec.forMs) / MINUTE_MS };
}

/** May one opening reach the next? */
function mayTouchItself(spec: TimeSpec): boolean {
  if (spec.kind === 'weekly') return lengthMinutes(spec) >= DAY_MINUTES;
  if (spec.kind === 'cron') return firingsOfDay(spec.cron).shortestPauseMinutes * MINUTE_MS <= spec.forMs;
  return spec.kind === 'cron-switch' && haveCommonFiring(spec.startCron, spec.endCron);
}

/** The limit for a question about the windows of one list: 5 ms with a wide margin, in steps of about a microsecond. */
export const MOST_STEPS_OF_QUESTION = 1300;

/** The limit for a decision over all policies that select a compute: a boundary is decided before and after it, in 20 ms. */
export const MOST_STEPS_OF_DECISION = 7500;

/** The limit for a search for a boundary after its first decision and the first change. */
export const MOST_STEPS = 2000;

/** Backwards, every policy is asked again for each decision, the first included. */
export const MOST_STEPS_BACK = 2 * MOST_STEPS;

/** The cost of a decision itself, and of each policy in it that is unchanged. */
const STEPS_OF_DECISION = 10;

/** Of a policy that is asked, whatever its times are. */
const STEPS_OF_POLICY = 2;

/** Of each flip of a trial. */
const STEPS_OF_FLIP = 0.3;

/** The most steps of a decision when these policies have changed since the last one. */
export function stepsToDecide(
  { set }: CompiledPolicies,
  selecting: readonly number[],
  hasChanged: (policyIndex: number) => boolean,
): number {
  const policies = selecting.flatMap((index) => set.policies[index] ?? []);
  const changed = selecting.flatMap((index) => (hasChanged(index) ? (set.policies[index] ?? []) : []));
  const asked = changed.reduce((sum, policy) => sum + stepsToAsk(policy), 0);
  return STEPS_OF_DECISION + selecting.length + asked + stepsOfLeads(policies);
}

/** The cost of leads: each open window is asked if a window that is about to open is still needed. */
export function stepsOfLeads(policies: readonly Policy[]): number {
  return policies.reduce((sum, policy) => sum + leadsOf(policy), 0) * widestCheck(policies);
}

/** The number of a policy's windows that take effect by their start. */
export function leadsOf(policy: Policy): number {
  return partsOf(policy).leads;
}

/** The cost of one check of the most expensive list of windows. */
export function widestCheck(policies: readonly Policy[]): number {
  return policies.reduce((widest, policy) => Math.max(widest, partsOf(policy).widest), 0);
}

/** The highest cost of asking a policy for its directives and their end. */
export function stepsToAsk(policy: Policy): number {
  return partsOf(policy).steps;
}

/** The steps of the costliest question about the windows of a policy. */
export function stepsOfQuestion(policy: Policy): number {
  return Math.max(0, ...listsOf(policy).map(stepsToFindChange));
}

interface Parts {
  steps: number;
  leads: number;
  /** See {@link widestCheck}. */
  widest: number;
}

const knownParts = new WeakMap<Policy, Parts>();

function partsOf(policy: Policy): Parts {
  const known = knownParts.get(policy) ?? {
    steps: STEPS_OF_POLICY + stepsOfTimes(policy),
    leads: ruleOf(policy)
      .windows(policy)
      .filter(({ readyLeadMs }) => readyLeadMs !== undefined).length,
    widest: Math.max(0, ...listsOf(policy).map(stepsToCheck)),
  };
  knownParts.set(policy, known);
  return known;
}

function listsOf(policy: Policy): readonly (readonly TimeSpec[])[] {
  const rule = ruleOf(policy);
  if (rule.decides === 'values') return rule.windows(policy).map(({ at }) => at);
  const times = rule.times(policy);
  return times.length > 0 ? [times] : [];
}

function stepsOfTimes(policy: Policy): number {
  const rule = ruleOf(policy);
  if (rule.decides === 'values') return rule.windows(policy).reduce((sum, window) => sum + stepsOfWindow(window), 0);
  const trial = asKind(policy, 'trial');
  if (trial) return trial.design.periods * STEPS_OF_FLIP;
  const times = rule.times(policy);
  if (times.length === 0) return 0;
  // A freeze also states its end.
  return rule.stopsWrites ? stepsToFollow(times) + stepsToFindChange(times) : 2 * stepsToFollow(times);
}

/** Since when it is open, and until when; the same of its absolute times alone, and of when it is to be ready. */
function stepsOfWindow(window: ScheduleWindow): number {
  const { at } = window;
  const absolute = at.filter(({ kind }) => kind === 'interval');
  const leads = leadsOfWindow(window).length;
  const leading = leads === 0 ? 0 : leads * stepsToFollow(at) + stepsToFindChange(at);
  return 2 * stepsToFollow(at) + leading + (absolute.length > 0 ? stepsToFollow(absolute) : 0);
}
