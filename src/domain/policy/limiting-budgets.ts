import type { BudgetPolicy } from './kinds/budget.ts';
import { policiesOfKind } from './kinds/kinds.ts';
import type { PolicySet } from './policy.ts';

/** The enforced budgets that have limiting steps, with only those steps. */
export function limitingBudgets({ policies }: PolicySet): Pick<BudgetPolicy, 'name' | 'steps'>[] {
  return policiesOfKind(policies, 'budget').flatMap((policy) => {
    if (policy.mode === 'observe') return [];
    const steps = policy.steps.filter(({ limits }) => limits !== undefined);
    return steps.length > 0 ? [{ name: policy.name, steps }] : [];
  });
}
