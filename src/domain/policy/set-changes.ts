import { trialSpan } from '../trial/assignment.ts';
import { asKind, policiesOfKind, ruleOf } from './kinds/kinds.ts';
import type { Policy } from './policy.ts';

/**
 * Protections of the first policy set that the next one lacks or changes: policies that are gone or only observe, policies with fewer
 * times, and different freezes and hard limits. One entry for each, for people. A file that somebody is still writing looks like this.
 */
export function vanishedBetween(before: readonly Policy[], after: readonly Policy[]): string[] {
  const left = new Map(after.map((policy) => [policy.name, policy]));
  return before.flatMap((policy) => {
    const now = left.get(policy.name);
    if (!now || now.kind !== policy.kind) return [`${nounOf(policy)} ${policy.name} is gone`];
    if (policy.mode === 'enforce' && now.mode === 'observe') return [`${nounOf(policy)} ${policy.name} only observes`];
    if (ruleOf(policy).guard(policy) && meaningOf(now) !== meaningOf(policy))
      return [`${nounOf(policy)} ${policy.name} is another`];
    return timesOf(now) < timesOf(policy) ? [`a window of ${policy.name} is gone`] : [];
  });
}

function nounOf(policy: Policy): string {
  return ruleOf(policy).guard(policy) ?? 'policy';
}

function meaningOf({ file: _file, ...policy }: Policy): string {
  return JSON.stringify(policy);
}

function timesOf(policy: Policy): number {
  return ruleOf(policy).times(policy).length;
}

/**
 * Trials that have begun, at `nowMs` (milliseconds since the epoch), and that the next policy set has with other terms: what was measured
 * until then would say nothing about what comes after. One line for each, with its file.
 */
export function changedTrials(before: readonly Policy[], after: readonly Policy[], nowMs: number): string[] {
  return policiesOfKind(before, 'trial').flatMap((policy) => {
    const next = asKind(
      after.find(({ name }) => name === policy.name),
      'trial',
    );
    if (next === undefined || next.digest === policy.digest) return [];
    if (nowMs < trialSpan(policy.design).fromMs) return [];
    const what = 'seed, control, unit, rotate, from, zone and of can not be changed any more';
    return [`${next.file}: trial ${next.name} has begun, so ${what}: give the new one another name`];
  });
}
