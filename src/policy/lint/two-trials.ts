import { policiesOfKind } from '../../domain/policy/kinds/kinds.ts';
import type { TrialPolicy } from '../../domain/policy/kinds/trial.ts';
import { endDayOf } from '../../domain/trial/assignment.ts';
import { type LintRule, nameOf, type Remark } from './rule.ts';

/** Finds two trials that share units while both run. A shared unit counts in one of them only, so the other trial has fewer units. */
export const twoTrials: LintRule = function* (context) {
  const { overlap } = context;
  const trials = policiesOfKind(context.policies, 'trial');
  for (const [index, policy] of trials.entries()) {
    const other = trials.slice(0, index).find((one) => runTogether(one, policy) && overlap.mayMeet(policy, one));
    if (!other) continue;
    const shared = overlap.shared(policy, other);
    const which = shared ? `computes such as ${shared.computeId} are` : 'units may be';
    const message = `${which} also in the trial ${nameOf(context, other)} at the same time, and a unit counts in one trial only: select apart, or let one begin when the other is over`;
    const severity = shared ? 'error' : 'warning';
    yield { code: 'two-trials', policy, at: ['select'], severity, message } satisfies Remark;
  }
};

function runTogether({ design: a }: TrialPolicy, { design: b }: TrialPolicy): boolean {
  return a.fromDay < endDayOf(b) && b.fromDay < endDayOf(a);
}
