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

/** While the engine is unavailable, each daemon takes one of this many equal shares of the limit, so that this many daemons stay within it. */
const DAEMONS_WITHOUT_ENGINE = 4;

/**
 * The budget that all daemons of a group share through their engine. While the engine is unavailable, reads go on at a fourth of the
 * steady rate. Nothing is written then, since the store gives no lease.
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
  /** The start of the log that has the entry, which identifies the log; undefined if no log has it. */
  logBeganAtMs: number | undefined;
}

/** This daemon's requests for an account. */
interface OwnRequests {
  /** The start of the log that answered last, which identifies the log. */
  logBeganAtMs: number | undefined;
  /** The requests of the last minute. */
  sent: Sent[];
}

/**
 * Uses a part of the limit alone while the shared log is unavailable. Requests that were sent meanwhile, or before the log was lost, are
 * missing in the shared log. Each daemon adds its own of the last minute. A daemon may have ended before it could add them, so the steady
 * rate applies for a minute.
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
  /** Accounts whose last request to the shared log has failed. */
  const unlogged = new Set<string>();
  const requests = new Map<string, OwnRequests>();

  function requestsOf(account: string): OwnRequests {
    const own = requests.get(account) ?? { logBeganAtMs: undefined, sent: [] };
    requests.set(account, own);
    const sinceMs = clock.monotonicMs() - MINUTE_MS - jitterMs;
    own.sent = own.sent.filter(({ atMs }) => atMs > sinceMs);
    return own;
  }

  function note({ sent }: OwnRequests, { timeMs, afterMs }: PermitGrant, logBeganAtMs: number | undefined): void {
    const nowMs = clock.monotonicMs();
    for (const ms of afterMs) sent.push({ atMs: nowMs + ms, loggedMs: timeMs + ms, logBeganAtMs });
  }

  /** Asks the shared log, and adds this daemon's requests that are missing in it. */
  async function askShared(account: string, wanted: PermitRequest): Promise<PermitGrant> {
    const own = requestsOf(account);
    const missing = own.sent.filter(({ logBeganAtMs }) => logBeganAtMs !== own.logBeganAtMs);
    const isUnlogged = unlogged.has(account) || missing.length > 0;
    // So that a concurrent call does not add the same requests.
    for (const one of missing) one.logBeganAtMs = own.logBeganAtMs;
    const nowMs = clock.monotonicMs();
    const sentAgoMs = missing.map(({ atMs }) => Math.max(0, nowMs - atMs));
    try {
      const granted = await shared.grant(account, { ...wanted, unlogged: isUnlogged, sentAgoMs });
      for (const one of missing) one.logBeganAtMs = granted.beganAtMs;
      return granted;
    } catch (error) {
      for (const one of missing) one.logBeganAtMs = undefined;
      throw error;
    }
  }

  return {
    async grant(account, wanted) {
      const own = requestsOf(account);
      const { logBeganAtMs } = own;
      own.sent = own.sent.filter(({ loggedMs }) => !wanted.unsent?.includes(loggedMs));
      try {
        let granted = await askShared(account, wanted);
        own.logBeganAtMs = granted.beganAtMs;
        if (logBeganAtMs !== undefined && logBeganAtMs !== granted.beganAtMs) {
          // This is a new log, which has not counted earlier requests: the grant is given back, and asked for again.
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
 * The share of the limit that reading commands use. An idle daemon uses a tenth of the limit, so both have room. A busy daemon loses at most
 * a fourth. With a smaller share, reading a thousand projects would take a quarter of an hour.
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
