import { grant, learn, newRateBudget, type RateBudgetState } from '../../domain/rate-budget/grant.ts';
import type { RateLimits } from '../../domain/rate-budget/limits.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Engine } from '../../ports/engine.ts';
import type { RateBudget } from '../../ports/rate-budget.ts';
import { createPostgresBudgets } from './postgres-budget.ts';
import { type BudgetStore, createRateBudget } from './rate-budget.ts';
import { createRedisBudgets } from './redis-budget.ts';

/** While the engine is unavailable each daemon takes this fraction of the limit, so that this many stay within it. */
const DAEMONS_WITHOUT_ENGINE = 4;

/**
 * The budget that all daemons of a group share through their engine. While the engine is unavailable, reads go on at a fourth of the
 * steady rate (nothing is written then, since the store gives no lease).
 */
export async function createGroupBudget(options: {
  engine: Engine;
  limits: RateLimits;
  clock: Clock;
}): Promise<RateBudget> {
  const { engine, limits, clock } = options;
  const shared =
    engine.kind === 'redis' ? createRedisBudgets({ engine, limits }) : await createPostgresBudgets({ engine, limits });
  return createRateBudget({ budgets: withFallback(shared, limits, clock), perMinute: limits.perMinute, clock });
}

/** Requests sent while the engine is unavailable are in no shared log. The first minute after an outage therefore counts as unknown. */
function withFallback(
  shared: BudgetStore,
  { perMinute, perRouteSecond, jitterMs }: RateLimits,
  clock: Pick<Clock, 'monotonicMs'>,
): BudgetStore {
  const share = (limit: number) => Math.max(1, Math.floor(limit / DAEMONS_WITHOUT_ENGINE));
  const alone = createMemoryBudgets({
    limits: { perMinute: share(perMinute), perRouteSecond: share(perRouteSecond), jitterMs },
    known: false,
    clock,
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

/** Budgets of this process alone, for accounts (or shares of them) that it has to itself. */
export function createMemoryBudgets(options: {
  limits: RateLimits;
  /** True if nothing was sent for the accounts before. */
  known: boolean;
  clock: Pick<Clock, 'monotonicMs'>;
}): BudgetStore {
  const { limits, known, clock } = options;
  const states = new Map<string, RateBudgetState>();
  const stateOf = (account: string) => states.get(account) ?? newRateBudget(limits, clock.monotonicMs(), known);
  return {
    async grant(account, wanted) {
      const { state, ...granted } = grant(limits, stateOf(account), clock.monotonicMs(), wanted);
      states.set(account, state);
      return granted;
    },
    async learn(account, pauseMs) {
      const state = learn(limits, stateOf(account), clock.monotonicMs(), pauseMs);
      states.set(account, state);
      return state.level;
    },
  };
}

/**
 * The share of the limit that reading commands use. An idle daemon uses a tenth, so both have room, and a busy daemon loses at most one
 * request in four. With a smaller share, reading a thousand projects would take a quarter of an hour.
 */
const READING_SHARE = 1 / 4;

/** The budget of a command that reads while unknown daemons may run. With `alone` it may use the whole limit. */
export function createReadingBudget(options: { alone: boolean; limits: RateLimits; clock: Clock }): RateBudget {
  const { alone, limits, clock } = options;
  const part = (limit: number) => (alone ? limit : Math.max(1, Math.ceil(limit * READING_SHARE)));
  const { perMinute, perRouteSecond, jitterMs } = limits;
  const own = { perMinute: part(perMinute), perRouteSecond: part(perRouteSecond), jitterMs };
  return createRateBudget({ budgets: createMemoryBudgets({ limits: own, known: true, clock }), perMinute, clock });
}
