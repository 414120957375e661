import type { PgPool } from 'bullmq';
import type { Cluster, Redis } from 'ioredis';

/** A connection to one Redis (also the one that a Sentinel names), or to those of a Cluster. */
export type RedisConnection = Redis | Cluster;

/** Redis, opened once and shared by queue and store. */
export interface RedisEngine {
  kind: 'redis';
  /** Starts every key of this group; the braces keep them in one slot of a Cluster. */
  prefix: string;
  /** The connection for short commands: it fails at once while Redis is away. */
  commands: RedisConnection;
  /** Opens a connection whose commands wait until Redis is back: for workers. Closed with the engine, as are its duplicates. */
  openWorkerConnection(): RedisConnection;
}

/** A Postgres, on a server or in this process, opened once and shared by queue and store. */
export interface PostgresEngine {
  kind: 'postgres';
  /** Holds every table of this group; the pool's search path names it alone. */
  schema: string;
  pool: PgPool;
}

/** Means only that the engine is away, which its state reports; the driver's error is its cause. */
export class EngineAwayError extends Error {
  override readonly name = 'EngineAwayError';
}

/** The engine of queue and store came up or went down. */
export interface EngineState {
  up: boolean;
  /** One line for people, without secrets: what is away and why, or that it is back. */
  message: string;
}

interface EngineLife {
  /** One word for messages: `Redis`, `Postgres` or `embedded`. */
  name: string;
  /** Calls `listener` once for each change of state, never for the state that holds when it is added. */
  onStateChange(listener: (state: EngineState) => void): void;
  /** True for an error that only means that the engine is away, which its state has reported already. */
  isAway(error: Error): boolean;
  /** The same methods; while the engine is away they reject with an {@link EngineAwayError} of one clear line. */
  guard<Port extends object>(port: Port): Port;
  /** Ends every connection at once and gives back locks. Close queue and store first. */
  close(): Promise<void>;
}

export type Engine = (RedisEngine | PostgresEngine) & EngineLife;
