import { type CompiledPolicies, compilePolicies, withBudgetSteps } from '../domain/policy/compiled-policies.ts';
import type { Rules } from '../ports/rules.ts';

/** Rules with their policies ready to decide by. */
export interface CompiledRules extends Omit<Rules, 'policies'> {
  policies: CompiledPolicies;
}

/** Holds the rules that are current. A reload replaces all of them in one assignment; what must not mix two keeps `current`. */
export interface CurrentRules {
  current: CompiledRules;
}

/** `before`: the rules that these follow. The steps of budgets that limit are those of what was spent, whatever the policies. */
export function compileRules({ policies, ...others }: Rules, before?: CompiledRules): CompiledRules {
  const compiled = compilePolicies(policies);
  return { policies: before ? withBudgetSteps(compiled, before.policies.budgetSteps) : compiled, ...others };
}
