import { type CompiledPolicies, compilePolicies } from '../domain/policy/compiled-policies.ts';
import type { Rules } from '../ports/rules.ts';

/** Rules with their policies ready to decide by. */
export interface CompiledRules extends Omit<Rules, 'policies'> {
  policies: CompiledPolicies;
}

/** Holds the rules that are current. A reload replaces all of them in one assignment; who must not mix two keeps `current`. */
export interface CurrentRules {
  current: CompiledRules;
}

export function compileRules({ policies, ...others }: Rules): CompiledRules {
  return { policies: compilePolicies(policies), ...others };
}

/** Parts with the current rules beside them, each read through the holder. A copy of it keeps the rules that are current then. */
export function withCurrentRules<Parts extends object>(rules: CurrentRules, parts: Parts) {
  const read: Readonly<CompiledRules> = {
    get policies() {
      return rules.current.policies;
    },
    get disruption() {
      return rules.current.disruption;
    },
    get manualChanges() {
      return rules.current.manualChanges;
    },
    get profiles() {
      return rules.current.profiles;
    },
    get revision() {
      return rules.current.revision;
    },
  };
  return Object.assign(read, { rules }, parts);
}
