import { randomBytes } from 'node:crypto';
import { type PgPool, type PgPoolClient, runMigrations } from 'bullmq';
import { asError } from '../../common/errors.ts';

/** Interval between probes of a failed database, milliseconds. */
const PROBE_EVERY_MS = 1_000;

/**
 * Watches the calls of a pool. Invariant: after a failure only a successful probe shows that the database is back. A full database or a
 * standby still answers every read, and some small writes. Returns a function that ends the watch.
 */
export function watchPool({
  pool,
  onChange,
  isSuspect = () => false,
}: {
  pool: PgPool;
  /** Called for every failure that means that the database is unavailable, and after each probe; without an error if the probe succeeded. */
  onChange(error: Error | undefined): void;
  /** Asked every second: true to probe although nothing has failed. */
  isSuspect?(): boolean;
}): () => void {
  const watched = new WeakSet<PgPoolClient>();
  const query = pool.query.bind(pool);
  const connect = pool.connect.bind(pool);
  let hasFailed = false;
  let isProbing = false;

  function noteFailure(error: unknown): void {
    const problem = asError(error);
    if (!isServerUnavailable(problem)) return;
    hasFailed = true;
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
    if (isProbing || !(hasFailed || isSuspect())) return;
    isProbing = true;
    try {
      await query(probeText());
      hasFailed = false;
      onChange(undefined);
    } catch (error) {
      hasFailed = true;
      onChange(asError(error));
    } finally {
      isProbing = false;
    }
  }

  // The pool of `pg` calls its own methods, and those of clients, with a callback: then there is no promise.
  const watchedCall = <Ask extends (...args: never[]) => Promise<unknown>>(ask: Ask): Ask => {
    const watchedAsk = (...args: Parameters<Ask>): unknown => {
      const answer: unknown = ask(...args);
      return answer instanceof Promise ? noted(answer) : answer;
    };
    return watchedAsk as Ask;
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

/** One transaction that writes a megabyte of new pages, for which a full disk has no room, and drops them. */
function probeText(): string {
  const table = `ebb_probe_${randomBytes(4).toString('hex')}`;
  return `CREATE TABLE ${table} (body text);
    INSERT INTO ${table} SELECT repeat(md5(g::text), 60) FROM generate_series(1, 500) AS g;
    DROP TABLE ${table}`;
}

/** True for an error without an SQLSTATE, and for SQLSTATEs of a broken or ending connection, a read-only server, or one that can't work. */
export function isServerUnavailable(error: Error): boolean {
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
