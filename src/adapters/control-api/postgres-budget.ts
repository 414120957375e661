import { z } from 'zod';
import { parseJson } from '../../common/result.ts';
import { grant, learn, newRateBudget, type RateBudgetState } from '../../domain/rate-budget/grant.ts';
import type { RateLimits } from '../../domain/rate-budget/limits.ts';
import { type PostgresEngine, transaction } from '../../ports/engine.ts';
import type { BudgetStore } from './rate-budget.ts';

const TABLE = 'CREATE TABLE IF NOT EXISTS ebb_api_log (account text PRIMARY KEY, state text NOT NULL)';

/** CREATE … IF NOT EXISTS alone fails when two daemons start together. */
const TABLE_LOCK = 0x65626267;

const CLAIM = "INSERT INTO ebb_api_log (account, state) VALUES ($1, '') ON CONFLICT (account) DO NOTHING";
/** The time is read in a statement after this one, since the wait for the lock may be long. */
const LOCK = 'SELECT 1 FROM ebb_api_log WHERE account = $1 FOR UPDATE';
const READ = `SELECT state, floor(extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now_ms
  FROM ebb_api_log WHERE account = $1`;
const WRITE = 'UPDATE ebb_api_log SET state = $2 WHERE account = $1';

type Row = Record<'state' | 'now_ms', unknown>;

const Stored = z.object({
  // Earlier versions don't write it.
  beganAtMs: z.number().default(0),
  lastMs: z.number(),
  offsetMs: z.number(),
  minute: z.array(z.number()),
  routes: z.record(z.string(), z.array(z.number())),
  steadyAtMs: z.number(),
  unknownUntilMs: z.number(),
  level: z.number(),
  learnedAtMs: z.number(),
  probeMs: z.number(),
  pausedUntilMs: z.number(),
  waitingUntilMs: z.array(z.number()),
}) satisfies z.ZodType<RateBudgetState>;

/** Budgets on a Postgres, one row for each account, shared by all daemons of a group. Rejects while the server is unavailable. */
export async function createPostgresBudgets(options: {
  engine: PostgresEngine;
  limits: RateLimits;
  /** Only for tests: replaces the server's clock, milliseconds since the epoch. */
  clock?: () => number;
}): Promise<BudgetStore> {
  const { engine, limits, clock } = options;
  await transaction(engine, async (client) => {
    await client.query('SELECT pg_advisory_xact_lock($1, hashtext($2))', [TABLE_LOCK, engine.schema]);
    await client.query(TABLE);
  });

  function change<T>(
    account: string,
    next: (state: RateBudgetState, nowMs: number) => { state: RateBudgetState; value: T },
  ) {
    return transaction(engine, async (client) => {
      if ((await client.query(LOCK, [account])).rows.length === 0) {
        await client.query(CLAIM, [account]);
        await client.query(LOCK, [account]);
      }
      const { rows } = await client.query<Row>(READ, [account]);
      const nowMs = clock?.() ?? Number(rows[0]?.now_ms ?? 0);
      const { state, value } = next(stateIn(rows[0]?.state) ?? newRateBudget(limits, nowMs), nowMs);
      await client.query(WRITE, [account, JSON.stringify(state)]);
      return value;
    });
  }

  return {
    grant: (account, wanted) =>
      change(account, (before, nowMs) => {
        const { state, ...value } = grant(limits, before, nowMs, wanted);
        return { state, value };
      }),
    learn: (account, pauseMs) =>
      change(account, (before, nowMs) => {
        const state = learn(limits, before, nowMs, pauseMs);
        return { state, value: state.level };
      }),
  };
}

/** An unreadable state counts as missing, which means the steady rate for a minute. */
function stateIn(text: unknown): RateBudgetState | undefined {
  return typeof text === 'string' ? Stored.safeParse(parseJson(text)).data : undefined;
}
