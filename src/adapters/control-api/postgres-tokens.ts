import type { PgPoolClient } from 'bullmq';
import type { PostgresEngine } from '../../ports/engine.ts';
import type { TokenSource } from './rate-budget.ts';
import { type Bucket, type BucketState, slowDown, takeTokens } from './token-bucket.ts';

const TABLE = `CREATE TABLE IF NOT EXISTS ebb_api_budget (
  account text PRIMARY KEY, full_at_ms double precision NOT NULL, slowdowns integer NOT NULL, slowed_at_ms double precision NOT NULL
)`;

/** Guards the making of the table: CREATE … IF NOT EXISTS alone fails when two daemons start together. */
const TABLE_LOCK = 0x65626267;

const CLAIM = `INSERT INTO ebb_api_budget (account, full_at_ms, slowdowns, slowed_at_ms) VALUES ($1, 0, 0, 0)
  ON CONFLICT (account) DO NOTHING`;
/** Locks the row first, then asks for the time: who waited for the lock must not count from before it. */
const LOCK = 'SELECT 1 FROM ebb_api_budget WHERE account = $1 FOR UPDATE';
const READ = `SELECT full_at_ms, slowdowns, slowed_at_ms, extract(epoch FROM clock_timestamp()) * 1000 AS now_ms
  FROM ebb_api_budget WHERE account = $1`;
const WRITE = 'UPDATE ebb_api_budget SET full_at_ms = $2, slowdowns = $3, slowed_at_ms = $4 WHERE account = $1';

type Row = Record<'full_at_ms' | 'slowdowns' | 'slowed_at_ms' | 'now_ms', unknown>;

/** Buckets on a Postgres server, shared by all daemons of a group. Rejects while the server is away. */
export async function createPostgresTokens(options: { engine: PostgresEngine; bucket: Bucket }): Promise<TokenSource> {
  const { engine, bucket } = options;
  await transaction(engine, async (client) => {
    await client.query('SELECT pg_advisory_xact_lock($1, hashtext($2))', [TABLE_LOCK, engine.schema]);
    await client.query(TABLE);
  });

  function change<T>(account: string, next: (state: BucketState, nowMs: number) => { state: BucketState; value: T }) {
    return transaction(engine, async (client) => {
      await client.query(CLAIM, [account]);
      await client.query(LOCK, [account]);
      const { rows } = await client.query<Row>(READ, [account]);
      const [row] = rows;
      const before = {
        fullAtMs: Number(row?.full_at_ms ?? 0),
        slowdowns: Number(row?.slowdowns ?? 0),
        slowedAtMs: Number(row?.slowed_at_ms ?? 0),
      };
      const { state, value } = next(before, Number(row?.now_ms ?? 0));
      await client.query(WRITE, [account, state.fullAtMs, state.slowdowns, state.slowedAtMs]);
      return value;
    });
  }

  return {
    take: (account, wanted) =>
      change(account, (before, nowMs) => {
        const { state, ...value } = takeTokens(bucket, before, nowMs, wanted);
        return { state, value };
      }),
    slowDown: (account, pauseMs) =>
      change(account, (before, nowMs) => ({ state: slowDown(bucket, before, nowMs, pauseMs), value: undefined })),
  };
}

async function transaction<T>({ pool }: PostgresEngine, work: (client: PgPoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  try {
    await client.query('BEGIN');
    const value = await work(client);
    await client.query('COMMIT');
    return value;
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {});
    throw error;
  } finally {
    client.release();
  }
}
