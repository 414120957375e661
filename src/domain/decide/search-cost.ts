import type { CompiledPolicies } from '../policy/compiled-policies.ts';
import { asKind, ruleOf } from '../policy/kinds/kinds.ts';
import type { Policy } from '../policy/policy.ts';
import { leadsOf, type ScheduleWindow } from '../policy/schedule-window.ts';
import { sum } from '../sum.ts';
import type { TimeSpec } from '../time/time-spec.ts';
import { DAY_MINUTES, MINUTE_MS } from '../time/units.ts';
import { firingsOfDay, haveCommonFiring } from '../time/windows/cron-times.ts';
import { maxSkippedDays } from '../time/windows/date-filter.ts';
import { maxSearches, maxSteps } from '../time/windows/stretch.ts';
import { lengthMinutes } from '../time/windows/weekly.ts';

/** An upper bound for how far local clocks are set forward or back. */
const MAX_CLOCK_CHANGE_MINUTES = 180;

/** The measured cost of evaluating one window, in steps. A weekly window of several days may have begun on any of them. */
export function stepsToEvaluateWindow(spec: TimeSpec): number {
  if (spec.kind === 'weekly') return 0.6 + 0.1 * spec.endDayOffset;
  return STEPS_BY_KIND[spec.kind] + ('dates' in spec && spec.dates ? STEPS_OF_CRON_DATES : 0);
}

const STEPS_BY_KIND = { always: 0.1, interval: 0.1, cron: 0.75, 'cron-switch': 1 } as const;

/** The cost of comparing the dates on which a cron expression fires with those that calendars allow, for up to eight years. */
const STEPS_OF_CRON_DATES = 4;

/** The cost of skipping one day that calendars exclude. */
const STEPS_OF_DAY = 0.3;

/** The maximum cost, in steps of about a microsecond, of evaluating these windows, including a chain of openings that touch. */
export function stepsToFollow(specs: readonly TimeSpec[]): number {
  const openings = Math.min(maxSteps(specs.length), 3 + maxTouchingOpenings(specs));
  const days = sum(specs.map((spec) => ('dates' in spec ? maxSkippedDays(spec.dates) : 0)));
  return openings * stepsToCheck(specs) + days * STEPS_OF_DAY;
}

/** The maximum cost of finding the next change of these windows, which may take several searches. */
export function stepsToFindChange(specs: readonly TimeSpec[]): number {
  return maxSearches(specs.length) * stepsToFollow(specs);
}

function stepsToCheck(specs: readonly TimeSpec[]): number {
  return sum(specs.map(stepsToEvaluateWindow));
}

/** The maximum number of consecutive openings that may touch each other. */
function maxTouchingOpenings(specs: readonly TimeSpec[]): number {
  const [first] = specs;
  if (first && specs.length === 1 && !mayTouchItself(first)) return 1;
  const recurring = specs.map(openingsOfDay).filter((each) => each !== undefined);
  const openMinutes = sum(recurring.map(({ minutes }) => minutes));
  // Windows that together are open for less than a day leave a gap in it.
  if (openMinutes >= DAY_MINUTES - MAX_CLOCK_CHANGE_MINUTES) return Number.POSITIVE_INFINITY;
  const openings = sum(recurring.map(({ count }) => count + 1));
  const others = specs.length - recurring.length;
  return openings * (1 + others) + others;
}

/** The maximum number of openings of a recurring window in 24 hours, and their total duration. */
function openingsOfDay(spec: TimeSpec): { count: number; minutes: number } | undefined {
  if (spec.kind === 'weekly') return { count: 1, minutes: lengthMinutes(spec) };
  if (spec.kind === 'cron-switch') return { count: Number.POSITIVE_INFINITY, minutes: Number.POSITIVE_INFINITY };
  if (spec.kind !== 'cron') return undefined;
  const { count } = firingsOfDay(spec.cron);
  return { count, minutes: (count * spec.forMs) / MINUTE_MS };
}

/** True if one opening may last until the next. */
function mayTouchItself(spec: TimeSpec): boolean {
  if (spec.kind === 'weekly') return lengthMinutes(spec) >= DAY_MINUTES;
  if (spec.kind === 'cron') return firingsOfDay(spec.cron).shortestPauseMinutes * MINUTE_MS <= spec.forMs;
  return spec.kind === 'cron-switch' && haveCommonFiring(spec.startCron, spec.endCron);
}

/** The limit for finding the next change of one list of windows: 5 ms with a wide margin, in steps of about a microsecond. */
export const MAX_STEPS_TO_FIND_CHANGE = 1300;

/** The limit for one decision over all policies of a compute. A boundary needs two, before and after it, in 20 ms. */
export const MAX_STEPS_OF_DECISION = 7500;

/** The limit for a boundary search, not counting its first decision. The first change alone may cost as much as a decision. */
export const MAX_STEPS = 2000;

/** The limit for a backward search, in which each decision evaluates every policy again. */
export const MAX_STEPS_BACK = 2 * MAX_STEPS;

/** The cost of a decision itself. Each policy that selects the compute adds one step, even if it is unchanged. */
const STEPS_OF_DECISION = 10;

/** The fixed cost of evaluating a policy. */
const STEPS_OF_POLICY = 2;

/** The cost of each flip of a trial. */
const STEPS_OF_FLIP = 0.3;

/** The maximum cost of a decision when these policies have changed since the last one. */
export function stepsToDecide(
  { set }: CompiledPolicies,
  selecting: readonly number[],
  hasChanged: (policyIndex: number) => boolean,
): number {
  const policiesAt = (indexes: readonly number[]) => indexes.flatMap((index) => set.policies[index] ?? []);
  const changedSteps = sum(policiesAt(selecting.filter(hasChanged)).map(stepsToEvaluate));
  return STEPS_OF_DECISION + selecting.length + changedSteps + stepsOfLeads(policiesAt(selecting));
}

/** The cost of leads: each window with a lead is compared with an open window. */
export function stepsOfLeads(policies: readonly Policy[]): number {
  return sum(policies.map(countLeads)) * widestCheck(policies);
}

/** The number of a policy's windows with `ready`, which may take effect before they open. */
export function countLeads(policy: Policy): number {
  return policyCost(policy).leads;
}

/** The cost of checking the most expensive list of windows once. */
export function widestCheck(policies: readonly Policy[]): number {
  return policies.reduce((widest, policy) => Math.max(widest, policyCost(policy).widest), 0);
}

/** The maximum cost of evaluating a policy's directives and their end. */
export function stepsToEvaluate(policy: Policy): number {
  return policyCost(policy).steps;
}

/** The maximum cost of finding the next change in any of a policy's lists of windows. */
export function stepsOfWorstSearch(policy: Policy): number {
  return Math.max(0, ...timeListsOf(policy).map(stepsToFindChange));
}

interface PolicyCost {
  steps: number;
  leads: number;
  /** The cost of checking the most expensive list of windows once. */
  widest: number;
}

const costCache = new WeakMap<Policy, PolicyCost>();

function policyCost(policy: Policy): PolicyCost {
  const cost = costCache.get(policy) ?? {
    steps: STEPS_OF_POLICY + stepsOfTimes(policy),
    leads: ruleOf(policy)
      .windows(policy)
      .filter(({ readyLeadMs }) => readyLeadMs !== undefined).length,
    widest: Math.max(0, ...timeListsOf(policy).map(stepsToCheck)),
  };
  costCache.set(policy, cost);
  return cost;
}

function timeListsOf(policy: Policy): readonly (readonly TimeSpec[])[] {
  const rule = ruleOf(policy);
  if (rule.decides === 'values') return rule.windows(policy).map(({ at }) => at);
  const times = rule.times(policy);
  return times.length > 0 ? [times] : [];
}

function stepsOfTimes(policy: Policy): number {
  const rule = ruleOf(policy);
  if (rule.decides === 'values') return sum(rule.windows(policy).map(stepsOfWindow));
  const trial = asKind(policy, 'trial');
  if (trial) return trial.design.periods * STEPS_OF_FLIP;
  const times = rule.times(policy);
  if (times.length === 0) return 0;
  // The end of a freeze is also computed.
  return rule.stopsWrites ? stepsToFollow(times) + stepsToFindChange(times) : 2 * stepsToFollow(times);
}

/** The cost of finding the start and end of a window, those of its absolute times and, with a lead, its next opening. */
function stepsOfWindow(window: ScheduleWindow): number {
  const { at } = window;
  const absolute = at.filter(({ kind }) => kind === 'interval');
  const leads = leadsOf(window).length;
  const leadSteps = leads === 0 ? 0 : leads * stepsToFollow(at) + stepsToFindChange(at);
  return 2 * stepsToFollow(at) + leadSteps + (absolute.length > 0 ? stepsToFollow(absolute) : 0);
}
