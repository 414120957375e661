import { FIELD_GROUPS } from '../../compute/compute.ts';
import type { PartialDisruption } from '../../policy/disruption.ts';
import { stepsLimiting } from '../budget-steps.ts';
import { type StageInput, stage } from './draft.ts';
import { clampGroup, type StepBounds } from './limits.ts';

/** The rule of steps without their own: only the sizes of sleeping computes are lowered, without a deadline. */
const WHILE_ASLEEP: PartialDisruption = { lower: { when: 'idle', atDeadline: 'apply' } };

/** The budget steps that limit the compute now, each with its policy. */
export function limitingSteps({ effective, compute, instantMs, budgetSteps }: StageInput<'budget'>) {
  return effective.budget.flatMap(({ policy, policyIndex, terms }) =>
    stepsLimiting(budgetSteps, { policy: policy.name, terms, compute, instantMs }).map((step) => ({
      ...{ policy, policyIndex, step },
    })),
  );
}

/**
 * After limits and before headroom: clamps to the budget steps that have been reached. A raise up to their bounds keeps the disruption
 * rules of the policy that wants it.
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
