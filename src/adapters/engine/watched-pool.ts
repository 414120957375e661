import { randomBytes } from 'node:crypto';
import { type PgPool, type PgPoolClient, runMigrations } from 'bullmq';

/** Interval between tries of a database that failed, milliseconds. */
const PROBE_EVERY_MS = 1_000;

interface WatchedPoolOptions {
  pool: PgPool;
  /** Called for every failure that means that the database is away, and after each probe: without an error once a write succeeded. */
  onChange(error: Error | undefined): void;
  /** Asked every second: true where a write is to be tried though nothing has failed. */
  isSuspect?(): boolean;
}

/**
 * Watches the calls of a pool. Invariant: after a failure only a successful write of our own shows that the database is back. A full
 * database, or a standby, answers every read and some small writes. Returns a function that ends the watch.
 */
export function watchPool({ pool, onChange, isSuspect = () => false }: WatchedPoolOptions): () => void {
  const watched = new WeakSet<PgPoolClient>();
  const query = pool.query.bind(pool);
  const connect = pool.connect.bind(pool);
  let failed = false;
  let probing = false;

  function noteFailure(error: unknown): void {
    const problem = error instanceof Error ? error : new Error(String(error));
    if (!isServerAway(problem)) return;
    failed = true;
    onChange(problem);
  }

  async function noted<T>(answer: Promise<T>): Promise<T> {
    try {
      return await answer;
    } catch (error) {
      noteFailure(error);
      throw error;
    }
  }

  async function probe(): Promise<void> {
    if (probing || !(failed || isSuspect())) return;
    probing = true;
    try {
      await query(probeText());
      failed = false;
      onChange(undefined);
    } catch (error) {
      failed = true;
      onChange(error instanceof Error ? error : new Error(String(error)));
    } finally {
      probing = false;
    }
  }

  // The pool of `pg` asks itself for clients, and clients for answers, with a callback: then there is nothing to wait for here.
  const watchedCall = <Ask extends (...args: never[]) => Promise<unknown>>(ask: Ask): Ask => {
    const asked = (...args: Parameters<Ask>): unknown => {
      const answer: unknown = ask(...args);
      return answer instanceof Promise ? noted(answer) : answer;
    };
    return asked as Ask;
  };
  pool.query = watchedCall(query);
  pool.connect = watchedCall((...args: Parameters<typeof connect>) => {
    const connecting: unknown = connect(...args);
    return connecting instanceof Promise ? connecting.then(watchClient) : (connecting as ReturnType<typeof connect>);
  });

  function watchClient(client: PgPoolClient): PgPoolClient {
    if (!watched.has(client)) client.query = watchedCall(client.query.bind(client));
    watched.add(client);
    return client;
  }

  const timer = setInterval(() => void probe(), PROBE_EVERY_MS);
  timer.unref();
  return () => clearInterval(timer);
}

/** In one transaction: a megabyte of new pages, which a full disk has no room for, and of which nothing stays. */
function probeText(): string {
  const table = `ebb_probe_${randomBytes(4).toString('hex')}`;
  return `CREATE TABLE ${table} (body text);
    INSERT INTO ${table} SELECT repeat(md5(g::text), 60) FROM generate_series(1, 500) AS g;
    DROP TABLE ${table}`;
}

/** False for the errors that a working server gives: those with an SQLSTATE, but for broken or ending connections and read-only servers. */
export function isServerAway(error: Error): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === undefined || !/^[0-9A-Z]{5}$/.test(code) || /^(08|25006|57P|58|53|XX)/.test(code);
}

/** Brings the group's schema up to date with this BullMQ, in one transaction. */
export async function prepareSchema({ pool, schema }: { pool: PgPool; schema: string }): Promise<void> {
  const client = await pool.connect();
  try {
    await runMigrations(client, schema);
  } finally {
    client.release();
  }
}
