import { withBudgetSteps, withTrialStops } from '../../domain/policy/compiled-policies.ts';
import type { DocumentStore } from '../../ports/store.ts';
import type { CurrentRules } from '../rules.ts';
import { readBudgets, spansOf } from '../usage/budget-store.ts';
import { readTrialStops } from '../usage/trial-stops.ts';
import type { PolicySets } from './write-permission.ts';

export interface LeaderDecisionsDeps {
  rules: CurrentRules;
  sets: PolicySets;
  store: Pick<DocumentStore, 'document'>;
}

/**
 * Reads which steps of budgets limit, and which trials were ended, as the leader has decided it; where that is news, the rules are swapped
 * and the fleet is evaluated again, as after a reload. What a store has lost stays as it was known.
 */
export async function refreshLeaderDecisions({ rules, sets, store }: LeaderDecisionsDeps): Promise<void> {
  const { policies } = rules.current.policies.set;
  const states = policies.some(({ kind }) => kind === 'budget') ? await readBudgets(store) : undefined;
  const mayStop = policies.some((policy) => policy.kind === 'trial' && policy.stopIf);
  const stops = mayStop ? await readTrialStops(store) : undefined;
  // The rules may have been swapped while the store was read.
  const { current } = rules;
  const { budgetSteps, trialStops } = current.policies;
  const after = { budgetSteps: states ? spansOf(states) : budgetSteps, trialStops: stops ?? trialStops };
  if (JSON.stringify(after) === JSON.stringify({ budgetSteps, trialStops })) return;
  const stepped = withBudgetSteps(current.policies, after.budgetSteps);
  rules.current = { ...current, policies: withTrialStops(stepped, after.trialStops) };
  sets.needsReevaluation = true;
}
