import { FIELD_GROUPS } from '../../compute/compute.ts';
import type { PartialDisruption } from '../../policy/disruption.ts';
import { stepsLimiting } from '../budget-steps.ts';
import { type StageInput, stage } from './draft.ts';
import { clampGroup, type StepBounds } from './limits.ts';

/** Without a rule of its own a step lowers the size of sleeping computes only, however long that takes. */
const WHILE_ASLEEP: PartialDisruption = { lower: { when: 'idle', atDeadline: 'apply' } };

/** The steps of budgets that limit the compute now, and whose each is. */
export function limitingSteps({ effective, compute, instantMs, budgetSteps }: StageInput<'budget'>) {
  return effective.budget.flatMap(({ policy, policyIndex, terms }) =>
    stepsLimiting(budgetSteps, { policy: policy.name, terms, compute, instantMs }).map((step) => ({
      ...{ policy, policyIndex, step },
    })),
  );
}

/**
 * After limits and before headroom: the steps of budgets that have been reached clamp further. A raise below their bounds is that of the
 * policy that asks for it, and so are its rules.
 */
export const clampToBudgetSteps = stage(['budget'], (draft, input) => {
  const bounds = limitingSteps(input).map(
    ({ policy, policyIndex, step }): StepBounds => ({
      ...{ type: 'bounds', policyIndex, hard: false, ranges: step.limits ?? {} },
      policy: {
        ...policy,
        disruption: step.disruption ?? { ...draft.deciders.size?.policy?.disruption, ...WHILE_ASLEEP },
      },
      budgetStep: { at: step.at, of: step.of },
    }),
  );
  for (const group of FIELD_GROUPS) clampGroup(draft, input, group, bounds, 'budget_step');
});
