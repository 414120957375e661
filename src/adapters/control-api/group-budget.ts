import type { RateLimits } from '../../domain/rate-budget/limits.ts';
import type { Engine } from '../../ports/engine.ts';
import type { RateBudget } from '../../ports/rate-budget.ts';
import { createMemoryBudgets } from './memory-budget.ts';
import { createPostgresBudgets } from './postgres-budget.ts';
import { type BudgetStore, createRateBudget } from './rate-budget.ts';
import { createRedisBudgets } from './redis-budget.ts';

/** While nobody knows what the others use, each daemon takes so small a part that this many stay within the limit. */
const DAEMONS_WITHOUT_ENGINE = 4;

/**
 * The budget that all daemons of a group share through their engine. While the engine is away reading goes on, at a fourth of the
 * steady rate (nothing is written then: a store that can't be asked gives no lease).
 */
export async function createGroupBudget(options: { engine: Engine; limits: RateLimits }): Promise<RateBudget> {
  const { engine, limits } = options;
  const shared =
    engine.kind === 'redis' ? createRedisBudgets({ engine, limits }) : await createPostgresBudgets({ engine, limits });
  return createRateBudget({ budgets: withFallback(shared, limits), perMinute: limits.perMinute });
}

/** Requests sent while the engine is away are in no shared log. The first minute after an outage therefore counts as unknown. */
function withFallback(shared: BudgetStore, { perMinute, perRouteSecond, jitterMs }: RateLimits): BudgetStore {
  const share = (limit: number) => Math.max(1, Math.floor(limit / DAEMONS_WITHOUT_ENGINE));
  const alone = createMemoryBudgets({
    limits: { perMinute: share(perMinute), perRouteSecond: share(perRouteSecond), jitterMs },
    known: false,
  });
  const unlogged = new Set<string>();
  return {
    async grant(account, wanted) {
      try {
        const granted = await shared.grant(account, { ...wanted, unlogged: unlogged.has(account) });
        unlogged.delete(account);
        return granted;
      } catch {
        unlogged.add(account);
        return alone.grant(account, { ...wanted, unlogged: true });
      }
    },
    async learn(account, pauseMs) {
      const level = await alone.learn(account, pauseMs);
      return shared.learn(account, pauseMs).catch(() => level);
    },
  };
}
