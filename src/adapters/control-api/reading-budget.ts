import type { RateLimits } from '../../domain/rate-budget/limits.ts';
import type { RateBudget } from '../../ports/rate-budget.ts';
import { createMemoryBudgets } from './memory-budget.ts';
import { createRateBudget } from './rate-budget.ts';

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
