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

/** While the engine is unavailable, each daemon takes a share of 1 / this of the limit, so that this many daemons stay within it. */
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
  /** The time of its entry in the log, by the clock of the log. */
  loggedMs: number;
  /** When the log that has the entry began, which identifies it; undefined if no log has the entry. */
  log: number | undefined;
}

/** This daemon's requests for an account. */
interface OwnRequests {
  /** When the log that last gave an answer began, which identifies it. */
  log: number | undefined;
  /** The requests of the last minute. */
  sent: Sent[];
}

/**
 * Uses a part of the limit alone while the shared log is unavailable. Requests that were sent then, or before the log was lost, are in no
 * shared log: each daemon adds those that it has sent within the last minute. Daemons may have ended before they could do so, so the
 * steady rate applies for a minute.
 */
export function withFallback(
  shared: BudgetStore,
  { perMinute, perRouteSecond, jitterMs }: RateLimits,
  clock: Pick<Clock, 'monotonicMs'>,
): BudgetStore {
  const alonePart = (limit: number) => Math.max(1, Math.floor(limit / DAEMONS_WITHOUT_ENGINE));
  const alone = createMemoryBudgets({
    limits: { perMinute: alonePart(perMinute), perRouteSecond: alonePart(perRouteSecond), jitterMs },
    assumesUnused: false,
    clock,
  });
  /** Accounts for which the shared log has not answered since it was unavailable. */
  const unlogged = new Set<string>();
  const requests = new Map<string, OwnRequests>();

  function requestsOf(account: string): OwnRequests {
    const own = requests.get(account) ?? { log: undefined, sent: [] };
    requests.set(account, own);
    const sinceMs = clock.monotonicMs() - MINUTE_MS - jitterMs;
    own.sent = own.sent.filter(({ atMs }) => atMs > sinceMs);
    return own;
  }

  function note({ sent }: OwnRequests, { timeMs, afterMs }: PermitGrant, log: number | undefined): void {
    const nowMs = clock.monotonicMs();
    for (const ms of afterMs) sent.push({ atMs: nowMs + ms, loggedMs: timeMs + ms, log });
  }

  /** Asks the shared log, and adds to it this daemon's requests that it lacks. */
  async function askShared(account: string, wanted: PermitRequest): Promise<PermitGrant> {
    const own = requestsOf(account);
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
      const own = requestsOf(account);
      const { log } = own;
      own.sent = own.sent.filter(({ loggedMs }) => !wanted.unsent?.includes(loggedMs));
      try {
        let granted = await askShared(account, wanted);
        own.log = granted.beganAtMs;
        if (log !== undefined && log !== granted.beganAtMs) {
          // The log was lost, so it has not counted earlier requests: this grant is given back, and asked for again.
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
  /** True to assume that nothing was sent for the accounts before; otherwise the steady rate applies for a minute. */
  assumesUnused: boolean;
  clock: Pick<Clock, 'monotonicMs'>;
}): BudgetStore {
  const { limits, assumesUnused, clock } = options;
  const states = new Map<string, RateBudgetState>();
  const stateOf = (account: string) => states.get(account) ?? newRateBudget(limits, clock.monotonicMs(), assumesUnused);
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
  const partOf = (limit: number) => (alone ? limit : Math.max(1, Math.ceil(limit * READING_SHARE)));
  const { perMinute, perRouteSecond, jitterMs } = limits;
  const ownLimits = { perMinute: partOf(perMinute), perRouteSecond: partOf(perRouteSecond), jitterMs };
  const budgets = createMemoryBudgets({ limits: ownLimits, assumesUnused: true, clock });
  return createRateBudget({ budgets, perMinute, clock });
}
