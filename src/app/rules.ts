import { type CompiledPolicies, compilePolicies } from '../domain/policy/compiled-policies.ts';
import type { Rules } from '../ports/rules.ts';

/** Rules with their policies ready to decide by. */
export interface CompiledRules extends Omit<Rules, 'policies'> {
  policies: CompiledPolicies;
}

/** Holds the rules that are current. A reload replaces all of them in one assignment; what must not mix two keeps `current`. */
export interface CurrentRules {
  current: CompiledRules;
}

export function compileRules({ policies, ...others }: Rules): CompiledRules {
  return { policies: compilePolicies(policies), ...others };
}
