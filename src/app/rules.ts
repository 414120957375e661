import { CONNECTION_PROFILES, type ConnectionProfile } from '../domain/connections/connection-profile.ts';
import { type CompiledPolicies, compilePolicies } from '../domain/policy/compiled-policies.ts';
import type { Rules } from '../ports/rules.ts';
import type { KnownBudgets } from './usage/budget-store.ts';

export interface CompiledRules extends Omit<Rules, 'policies'> {
  policies: CompiledPolicies;
  /**
   * The last sets that have become current, the newest first; an earlier one may have made restarts due that still wait. Absent until one does,
   * unless its approval is stored.
   */
  becameCurrent?: readonly CurrentSet[];
}

/** A policy set that has become current. */
export interface CurrentSet {
  hash: string;
  /** Milliseconds since the epoch. */
  currentSinceMs: number;
  /** Absent if nobody had to approve it. */
  approver?: Approvers | undefined;
}

/** Who approved a policy set, as a whole or by parts. */
export interface Approvers {
  /** Their names, comma-separated. */
  who: string;
  /** The instants of the approvals, milliseconds since the epoch; absent for an approval on the command line. */
  atMs?: readonly number[];
}

/** Holds the current rules. A reload replaces them in one assignment; code that needs the same rules throughout copies `current`. */
export interface CurrentRules {
  current: CompiledRules;
  /** The states and releases of budgets as last read from the store; absent if no policy is a budget. */
  budgets?: KnownBudgets | undefined;
}

/** Returns the connection profile of an account; the built-in profile `specification` if the settings do not name the account. */
export function profileOf({ current }: CurrentRules, account: string): ConnectionProfile {
  return current.profiles.get(account) ?? CONNECTION_PROFILES.specification;
}

/** Compiles rules. Takes over the leader's decisions, such as active steps of budgets, from the preceding rules. */
export function compileRules({ policies, ...others }: Rules, before?: CompiledRules): CompiledRules {
  const compiled = compilePolicies(policies);
  if (!before) return { policies: compiled, ...others };
  const { budgetSteps, trialStops, readyWaves } = before.policies;
  return { policies: { ...compiled, budgetSteps, trialStops, readyWaves }, ...others };
}
