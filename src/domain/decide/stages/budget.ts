import { FIELD_GROUPS } from '../../compute/compute.ts';
import type { PartialDisruption } from '../../policy/disruption.ts';
import { stepsLimiting } from '../budget-steps.ts';
import { stage } from './draft.ts';
import { clampGroup, type StepBounds } from './limits.ts';

/** Without a rule of its own a step lowers the size of sleeping computes only, however long that takes. */
const WHILE_ASLEEP: PartialDisruption = { lower: { when: 'idle', atDeadline: 'apply' } };

/**
 * After limits and before headroom: the steps of budgets that have been reached clamp further. A raise below their bounds is that of the
 * policy that asks for it, and so are its rules.
 */
export const clampToBudgetSteps = stage(['budget'], (draft, input) => {
  const { effective, compute, instantMs, budgetSteps } = input;
  const bounds = effective.budget.flatMap(({ policy, policyIndex, terms }): StepBounds[] =>
    stepsLimiting(budgetSteps, { policy: policy.name, terms, compute, instantMs }).map((step) => ({
      ...{ type: 'bounds', policyIndex, hard: false, ranges: step.limits ?? {} },
      policy: {
        ...policy,
        disruption: step.disruption ?? { ...draft.deciders.size?.policy?.disruption, ...WHILE_ASLEEP },
      },
      budgetStep: { at: step.at, of: step.of },
    })),
  );
  for (const group of FIELD_GROUPS) clampGroup(draft, input, group, bounds, 'budget_step');
});
