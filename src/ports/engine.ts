import { createHash } from 'node:crypto';
import type { PgPool, PgPoolClient } from 'bullmq';
import type { Cluster, Redis } from 'ioredis';

/** One Redis (perhaps found through Sentinel), or a Cluster. */
export type RedisConnection = Redis | Cluster;

/** Redis, opened once and shared by queue and store. */
export interface RedisEngine {
  kind: 'redis';
  /** Begins every key of this group; its braces keep all keys in one slot of a Cluster. */
  prefix: string;
  /** For short commands, which fail at once while Redis is unavailable. */
  commands: RedisConnection;
  /** Opens a connection whose commands wait until Redis is back. The engine closes it, and its duplicates. */
  openWorkerConnection(): RedisConnection;
}

/** A Postgres, on a server or in this process, opened once and shared by queue and store. */
export interface PostgresEngine {
  kind: 'postgres';
  /** Holds every table of this group; the pool's whole search path. */
  schema: string;
  pool: PgPool;
}

const scriptHashes = new Map<string, string>();

/** Runs a Lua script by its hash. Its text is sent only if Redis doesn't have it. */
export async function runScript(
  { commands }: Pick<RedisEngine, 'commands'>,
  text: string,
  keys: readonly string[],
  args: readonly (string | number)[],
): Promise<unknown> {
  const hash = scriptHashes.get(text) ?? createHash('sha1').update(text).digest('hex');
  scriptHashes.set(text, hash);
  try {
    return await commands.evalsha(hash, keys.length, ...keys, ...args);
  } catch (error) {
    if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error;
    return commands.eval(text, keys.length, ...keys, ...args);
  }
}

/** Runs `work` in a transaction, which is undone if it rejects. */
export async function transaction<T>(
  { pool }: Pick<PostgresEngine, 'pool'>,
  work: (client: PgPoolClient) => Promise<T>,
): Promise<T> {
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

/** Says that the engine is unavailable; {@link EngineState} reports that, too. The driver's error is the cause. */
export class EngineUnavailableError extends Error {
  override readonly name = 'EngineUnavailableError';
}

export interface EngineState {
  up: boolean;
  /** One line for people, without secrets: the engine is unavailable, and why; or it is back. */
  message: string;
}

interface EngineLife {
  /** One word for messages: `Redis`, `Postgres` or `embedded`. */
  name: string;
  /** Calls `listener` on each change of state, not for the current one. */
  onStateChange(listener: (state: EngineState) => void): void;
  /** True for an error that only means that the engine is unavailable. */
  isUnavailable(error: Error): boolean;
  /** Wraps the port's methods: while the engine is unavailable they reject with an {@link EngineUnavailableError}. */
  translateOutages<Port extends object>(port: Port): Port;
  /** Ends every connection at once and releases locks. Close queue and store first. */
  close(): Promise<void>;
}

export type Engine = (RedisEngine | PostgresEngine) & EngineLife;
