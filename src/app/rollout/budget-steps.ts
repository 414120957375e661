import { withBudgetSteps } from '../../domain/policy/compiled-policies.ts';
import type { UsageStore } from '../../ports/store.ts';
import type { CurrentRules } from '../rules.ts';
import { readBudgets, spansOf } from '../usage/budget-store.ts';
import type { PolicySets } from './write-permission.ts';

export interface BudgetStepsDeps {
  rules: CurrentRules;
  sets: PolicySets;
  store: Pick<UsageStore, 'usage'>;
}

/**
 * Reads which steps of budgets limit, as the leader has decided it; where that is news, the rules are swapped and the fleet is evaluated
 * again, as after a reload. What a store has lost stays as it was known.
 */
export async function refreshBudgetSteps({ rules, sets, store }: BudgetStepsDeps): Promise<void> {
  const { policies } = rules.current;
  if (!policies.set.policies.some(({ kind }) => kind === 'budget')) return;
  const states = await readBudgets(store);
  if (!states) return;
  const spans = spansOf(states);
  // The rules may have been swapped while the store was read.
  const { current } = rules;
  if (JSON.stringify(spans) === JSON.stringify(current.policies.budgetSteps)) return;
  rules.current = { ...current, policies: withBudgetSteps(current.policies, spans) };
  sets.needsReevaluation = true;
}
