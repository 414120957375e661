import { policiesOfKind, ruleOf } from '../../domain/policy/kinds/kinds.ts';
import type { SchedulePolicy } from '../../domain/policy/kinds/schedule.ts';
import type { Policy } from '../../domain/policy/policy.ts';
import type { TimeSpec } from '../../domain/time/time-spec.ts';
import { isoInstant } from '../../domain/time/units.ts';
import { anyOpenAt } from '../../domain/time/windows.ts';
import { syntaxOf } from '../kinds/kinds.ts';
import type { Openings } from './openings.ts';
import type { LintContext, LintRule, Remark } from './rule.ts';
import { FIELDS, type Field, proposedValue } from './schedules.ts';

/**
 * Finds a field that the windows of a schedule set, and that no policy sets once they close: it stays as they left it. Without a fleet, every
 * policy that may select the same compute counts as setting the field. Unread policies may set it, too.
 */
export const noValue: LintRule = function* (context) {
  if (!context.isWhole) return;
  for (const field of FIELDS) {
    const setters = context.policies.filter((policy) => maySet(policy, field));
    for (const policy of context.schedules) {
      const gapMs = hasWindowsOnly(policy, field) ? firstGap(policy, field, setters, context) : undefined;
      if (gapMs === undefined) continue;
      const message = [
        `no policy says what ${field} is from ${isoInstant(gapMs)} on, when the window closes, so it stays as the window left it`,
        `; give otherwise a ${field}, or write otherwise: baseline`,
      ].join('');
      yield { code: 'no-value', policy, at: ['otherwise'], message } satisfies Remark;
    }
  }
};

function hasWindowsOnly(policy: SchedulePolicy, field: Field): boolean {
  return !hasOtherwise(policy, field) && policy.windows.some((window) => proposedValue(window, field) !== undefined);
}

function hasOtherwise({ otherwise }: SchedulePolicy, field: Field): boolean {
  if (typeof otherwise === 'string') return otherwise === 'baseline';
  return proposedValue(otherwise, field) !== undefined;
}

function maySet(policy: Policy, field: Field): boolean {
  const group = field === 'size' ? 'size' : 'suspend_timeout';
  return ruleOf(policy).mayChange(policy).includes(group) && !syntaxOf(policy).onlyRaises;
}

/** The first end of a window of the policy at which nothing else sets the field; `setters` are all policies that may set it. */
function firstGap(
  policy: SchedulePolicy,
  field: Field,
  setters: readonly Policy[],
  context: LintContext,
): number | undefined {
  const { overlap } = context;
  // An observing policy does not set anything for an enforced one.
  const isSetter = (other: Policy) => other === policy || other.mode === 'enforce' || policy.mode === 'observe';
  const relevant = new Set(setters.filter(isSetter));
  const combinations = overlap.combinationsWith(policy) ?? [
    setters.filter((other) => other === policy || overlap.mayMeet(policy, other)),
  ];
  for (const combination of combinations) {
    const together = combination.filter((other) => relevant.has(other));
    const gapMs = gapAmong(policy, field, together, context);
    if (gapMs !== undefined) return gapMs;
  }
  return undefined;
}

function gapAmong(
  policy: SchedulePolicy,
  field: Field,
  together: readonly Policy[],
  { openings, nowMs, endMs }: LintContext,
): number | undefined {
  const schedules = policiesOfKind(together, 'schedule');
  // Policies of other kinds, and `otherwise`, set the field at all times.
  if (schedules.length < together.length || schedules.some((other) => hasOtherwise(other, field))) return undefined;
  const windows = windowsOf(policy, field);
  const all: Openings = openings.of(schedules.flatMap((other) => windowsOf(other, field)));
  for (let atMs: number | undefined = nowMs; atMs !== undefined; atMs = all.nextStartAfter(atMs)) {
    const closesMs = all.isOpenAt(atMs) ? all.nextChangeAfter(atMs) : undefined;
    if (closesMs !== undefined && closesMs < endMs && anyOpenAt(windows, closesMs - 1)) return closesMs;
  }
  return undefined;
}

function windowsOf({ windows }: SchedulePolicy, field: Field): TimeSpec[] {
  return windows.filter((window) => proposedValue(window, field) !== undefined).flatMap(({ at }) => at);
}
