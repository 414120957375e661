import { trialSpan } from '../trial/assignment.ts';
import type { Policy } from './policy.ts';

/**
 * Trials that have begun, at `nowMs` (milliseconds since the epoch), and that the next policy set has with other terms: what was measured
 * until then would say nothing about what comes after. One line for each, with its file.
 */
export function changedTrials(before: readonly Policy[], after: readonly Policy[], nowMs: number): string[] {
  return before.flatMap((policy) => {
    const next = after.find(({ name }) => name === policy.name);
    if (policy.kind !== 'trial' || next?.kind !== 'trial' || next.digest === policy.digest) return [];
    if (nowMs < trialSpan(policy.design).fromMs) return [];
    const what = 'seed, control, unit, rotate, from, zone and of can not be changed any more';
    return [`${next.file}: trial ${next.name} has begun, so ${what}: give the new one another name`];
  });
}
