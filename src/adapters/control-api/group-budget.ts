import {
  grant,
  learn,
  newRateBudget,
  type PermitGrant,
  type PermitRequest,
  type RateBudgetState,
} from '../../domain/rate-budget/grant.ts';
import type { RateLimits } from '../../domain/rate-budget/limits.ts';
import { MINUTE_MS } from '../../domain/time/units.ts';
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

/** A request that this daemon was granted within the last minute. */
interface Sent {
  /** In monotonic time. */
  atMs: number;
  /** The time of its entry in the log. */
  loggedMs: number;
  /** When the log began that has it; undefined if none has. */
  log: number | undefined;
}

/** What this daemon knows of an account: the log that has answered last, by its beginning, and the requests of the last minute. */
interface Own {
  log: number | undefined;
  sent: Sent[];
}

/**
 * Requests sent while the engine is unavailable are in no shared log, nor are those from before a loss of its data. Each daemon adds its own of
 * the last minute, which counts as unknown for a minute, since other daemons may have gone.
 */
export function withFallback(
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
  const owns = new Map<string, Own>();

  function ownOf(account: string): Own {
    const own = owns.get(account) ?? { log: undefined, sent: [] };
    owns.set(account, own);
    const sinceMs = clock.monotonicMs() - MINUTE_MS - jitterMs;
    own.sent = own.sent.filter(({ atMs }) => atMs > sinceMs);
    return own;
  }

  function note({ sent }: Own, { timeMs, afterMs }: PermitGrant, log: number | undefined): void {
    const nowMs = clock.monotonicMs();
    for (const ms of afterMs) sent.push({ atMs: nowMs + ms, loggedMs: timeMs + ms, log });
  }

  /** Asks the shared log, and adds to it what this daemon has sent that it lacks. */
  async function askShared(account: string, wanted: PermitRequest): Promise<PermitGrant> {
    const own = ownOf(account);
    const lacking = own.sent.filter(({ log }) => log !== own.log);
    const isUnlogged = unlogged.has(account) || lacking.length > 0;
    // Another call that is made meanwhile must not add them again.
    for (const one of lacking) one.log = own.log;
    const nowMs = clock.monotonicMs();
    const sentAgoMs = lacking.map(({ atMs }) => Math.max(0, nowMs - atMs));
    try {
      const granted = await shared.grant(account, { ...wanted, unlogged: isUnlogged, sentAgoMs });
      for (const one of lacking) one.log = granted.beganAtMs;
      return granted;
    } catch (error) {
      for (const one of lacking) one.log = undefined;
      throw error;
    }
  }

  return {
    async grant(account, wanted) {
      const own = ownOf(account);
      const { log } = own;
      own.sent = own.sent.filter(({ loggedMs }) => !wanted.unsent?.includes(loggedMs));
      try {
        let granted = await askShared(account, wanted);
        own.log = granted.beganAtMs;
        if (log !== undefined && log !== granted.beganAtMs) {
          // The log was lost, and has granted this without what was sent before.
          const { timeMs, afterMs } = granted;
          granted = await askShared(account, { ...wanted, unsent: afterMs.map((ms) => timeMs + ms) });
        }
        unlogged.delete(account);
        note(own, granted, granted.beganAtMs);
        return granted;
      } catch {
        unlogged.add(account);
        const granted = await alone.grant(account, { ...wanted, unlogged: true });
        note(own, granted, undefined);
        return granted;
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
