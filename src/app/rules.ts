import {
  type CompiledPolicies,
  compilePolicies,
  withBudgetSteps,
  withTrialStops,
} from '../domain/policy/compiled-policies.ts';
import type { Rules } from '../ports/rules.ts';

/** Rules with their policies ready to decide by. */
export interface CompiledRules extends Omit<Rules, 'policies'> {
  policies: CompiledPolicies;
}

/** Holds the rules that are current. A reload replaces all of them in one assignment; what must not mix two keeps `current`. */
export interface CurrentRules {
  current: CompiledRules;
}

/** `before`: the rules that these follow. Which steps of budgets limit and which trials were ended follows from what was used, whatever the policies. */
export function compileRules({ policies, ...others }: Rules, before?: CompiledRules): CompiledRules {
  const compiled = compilePolicies(policies);
  if (!before) return { policies: compiled, ...others };
  const { budgetSteps, trialStops } = before.policies;
  return { policies: withTrialStops(withBudgetSteps(compiled, budgetSteps), trialStops), ...others };
}
