import { type CompiledPolicies, compilePolicies } from '../domain/policy/compiled-policies.ts';
import type { Rules } from '../ports/rules.ts';

/** Rules with their policies ready to decide by. */
export interface CompiledRules extends Omit<Rules, 'policies'> {
  policies: CompiledPolicies;
}

/** Holds the current rules. A reload replaces all of them in one assignment; code that must not mix two keeps `current`. */
export interface CurrentRules {
  current: CompiledRules;
}

/** `before`: the preceding rules. The leader's decisions, such as active steps of budgets, stay whatever the policies. */
export function compileRules({ policies, ...others }: Rules, before?: CompiledRules): CompiledRules {
  const compiled = compilePolicies(policies);
  if (!before) return { policies: compiled, ...others };
  const { budgetSteps, trialStops, readyWaves } = before.policies;
  return { policies: { ...compiled, budgetSteps, trialStops, readyWaves }, ...others };
}
