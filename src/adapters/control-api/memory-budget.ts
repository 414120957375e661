import { type BudgetState, grant, learn, newBudget } from '../../domain/rate-budget/grant.ts';
import type { RateLimits } from '../../domain/rate-budget/limits.ts';
import type { RateBudget } from '../../ports/rate-budget.ts';
import { type BudgetStore, createRateBudget } from './rate-budget.ts';

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

/** The share of the limits that is taken beside daemons that nobody knows of. */
const SHARE = 1 / 4;

/**
 * For a command that reads beside daemons that it knows nothing of. It takes a quarter of the account's limit: a daemon at rest uses a
 * tenth, so both have room, and one that is busy finds at most one request in four taken. Less would make a person wait for a quarter
 * of an hour before a thousand projects are read. With `alone`, as on a platform on this machine, it may use the whole limit.
 */
export function createReadingBudget(options: { alone: boolean; limits: RateLimits }): RateBudget {
  const { alone, limits } = options;
  const part = (limit: number) => (alone ? limit : Math.max(1, Math.ceil(limit * SHARE)));
  const { perMinute, perRouteSecond, jitterMs } = limits;
  const own = { perMinute: part(perMinute), perRouteSecond: part(perRouteSecond), jitterMs };
  return createRateBudget({ budgets: createMemoryBudgets({ limits: own, known: true }), perMinute });
}
