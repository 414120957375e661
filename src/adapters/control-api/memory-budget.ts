import { type BudgetState, grant, learn, newBudget } from '../../domain/rate-budget/grant.ts';
import type { RateLimits } from '../../domain/rate-budget/limits.ts';
import type { BudgetStore } from './rate-budget.ts';

/** Budgets of this process alone: right where it has the account, or its share of it, to itself. */
export function createMemoryBudgets(options: {
  limits: RateLimits;
  /** True if nothing was sent for the accounts before. */
  known: boolean;
  /** Milliseconds; by default the process's own, which never runs backwards. */
  clock?: () => number;
}): BudgetStore {
  const { limits, known, clock = () => performance.now() } = options;
  const states = new Map<string, BudgetState>();
  const stateOf = (account: string) => states.get(account) ?? newBudget(limits, clock(), known);
  return {
    async grant(account, wanted) {
      const { state, ...granted } = grant(limits, stateOf(account), clock(), wanted);
      states.set(account, state);
      return granted;
    },
    async learn(account, pauseMs) {
      const state = learn(limits, stateOf(account), clock(), pauseMs);
      states.set(account, state);
      return state.level;
    },
  };
}
