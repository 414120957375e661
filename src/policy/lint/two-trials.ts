import { policiesOfKind } from '../../domain/policy/kinds/kinds.ts';
import type { TrialPolicy } from '../../domain/policy/kinds/trial.ts';
import { type LintRule, nameOf, type Remark } from './rule.ts';

/** Finds units in two trials at a time: only the first of them counts, and both measure something else than they claim. */
export const twoTrials: LintRule = function* ({ overlap, ...context }) {
  const trials = policiesOfKind(context.policies, 'trial');
  for (const [index, policy] of trials.entries()) {
    for (const other of trials.slice(0, index).filter((one) => sameTime(one, policy) && overlap.mayMeet(policy, one))) {
      const shared = overlap.shared(policy, other);
      const which = shared ? `computes such as ${shared.computeId} are` : 'units may be';
      const name = nameOf({ written: context.written }, other);
      const message = `${which} also in the trial ${name} at the same time, and a unit counts in one trial only: select apart, or let one begin when the other is over`;
      const severity = shared ? 'error' : 'warning';
      yield { code: 'two-trials', policy, at: ['select'], severity, message } satisfies Remark;
      break;
    }
  }
};

function sameTime({ design: a }: TrialPolicy, { design: b }: TrialPolicy): boolean {
  const endOf = ({ fromDay, periods, rotateDays }: TrialPolicy['design']) => fromDay + periods * rotateDays;
  return a.fromDay < endOf(b) && b.fromDay < endOf(a);
}
