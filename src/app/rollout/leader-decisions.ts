import { policiesOfKind } from '../../domain/policy/kinds/kinds.ts';
import type { DocumentStore } from '../../ports/store.ts';
import type { CurrentRules } from '../rules.ts';
import { hasReadyWaves, readReadyWaves } from '../stored-waves.ts';
import { readBudgets, spansOf } from '../usage/budget-store.ts';
import { readTrialStops } from '../usage/trial-stops.ts';
import type { PolicySets } from './write-permission.ts';

export interface LeaderDecisionsDeps {
  rules: CurrentRules;
  sets: PolicySets;
  store: Pick<DocumentStore, 'document'>;
}

/**
 * Reads the leader's decisions: active steps of budgets, ended trials, ready waves. When they change, the rules are swapped and the fleet
 * is evaluated again, as after a reload. Decisions that a store has lost stay in effect.
 */
export async function refreshLeaderDecisions({ rules, sets, store }: LeaderDecisionsDeps): Promise<void> {
  const { policies } = rules.current.policies.set;
  const waves = hasReadyWaves(policies) ? await readReadyWaves(store) : undefined;
  const states = policiesOfKind(policies, 'budget').length > 0 ? await readBudgets(store) : undefined;
  const mayStop = policiesOfKind(policies, 'trial').some(({ stopIf }) => stopIf !== undefined);
  const stops = mayStop ? await readTrialStops(store) : undefined;
  // The rules may have been swapped while the store was read.
  const { current } = rules;
  const { budgetSteps, trialStops, readyWaves } = current.policies;
  const after = {
    budgetSteps: states ? spansOf(states) : budgetSteps,
    trialStops: stops ?? trialStops,
    readyWaves: waves ?? readyWaves,
  };
  if (JSON.stringify(after) === JSON.stringify({ budgetSteps, trialStops, readyWaves })) return;
  rules.current = { ...current, policies: { ...current.policies, ...after } };
  sets.needsReevaluation = true;
}
