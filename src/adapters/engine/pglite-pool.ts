import { EventEmitter } from 'node:events';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { PGlite } from '@electric-sql/pglite';
import type { PgPool, PgPoolClient, PgQueryResult } from 'bullmq';

/**
 * A pool for BullMQ over the only session of an in-process PGlite. `end` waits for the running statement and refuses later ones. Invariant: from
 * BEGIN to COMMIT or ROLLBACK no other client's statement reaches the session. Invariant: every statement first waits one turn of the event
 * loop. PGlite answers in microtasks, so a busy queue would otherwise block timers and sockets.
 */
export function createPglitePool({ database }: { database: PGlite }): PgPool & { end(): Promise<void> } {
  const lock = createMutex();
  const clients = new Set<EventEmitter>();
  let isEnded = false;
  const stopNotifications = database.onNotification((channel, payload) => {
    for (const client of clients) client.emit('notification', { channel, payload });
  });

  async function run(text: string, params: readonly unknown[] | undefined): Promise<PgQueryResult> {
    if (isEnded) throw new Error('Cannot use a pool after calling end on the pool');
    // Migrations have several statements in one text, which only the simple protocol accepts.
    if (params === undefined || params.length === 0) {
      const last = (await database.exec(text)).at(-1);
      return { rows: last?.rows ?? [], rowCount: last?.affectedRows || (last?.rows.length ?? 0) };
    }
    const result = await database.query(
      text,
      params.map((param) => (param === undefined ? null : param)),
    );
    return { rows: result.rows, rowCount: result.affectedRows || result.rows.length };
  }

  async function query(text: string, params?: readonly unknown[]): Promise<PgQueryResult> {
    await nextTurn();
    const unlock = await lock();
    try {
      return await run(text, params);
    } finally {
      unlock();
    }
  }

  async function connect(): Promise<PgPoolClient> {
    const client = createClient({ lock, run, query, onRelease: (emitter) => clients.delete(emitter) });
    clients.add(client);
    return client;
  }

  const events = new EventEmitter().setMaxListeners(0);
  const pool = Object.assign(events, {
    query,
    connect,
    // Without keep-alive a worker polls at least every 10 s, so a jump of the clock delays a job by no more than that.
    options: { keepAlive: false },
    end: async () => {
      const unlock = await lock();
      isEnded = true;
      stopNotifications();
      unlock();
    },
  });
  return pool as PgPool & typeof pool;
}

function createClient({
  lock,
  run,
  query,
  onRelease,
}: {
  lock: ReturnType<typeof createMutex>;
  run: (text: string, params: readonly unknown[] | undefined) => Promise<PgQueryResult>;
  query: (text: string, params?: readonly unknown[]) => Promise<PgQueryResult>;
  onRelease: (client: EventEmitter) => void;
}): PgPoolClient & EventEmitter {
  let unlock: (() => void) | undefined;

  function leave(): void {
    unlock?.();
    unlock = undefined;
  }

  async function queryInSession(text: string, params?: readonly unknown[]): Promise<PgQueryResult> {
    if (unlock === undefined && !/^\s*BEGIN\b/i.test(text)) return query(text, params);
    await nextTurn();
    unlock ??= await lock();
    try {
      return await run(text, params);
    } finally {
      if (/^\s*(COMMIT|ROLLBACK)\b/i.test(text)) leave();
    }
  }

  const emitter = new EventEmitter().setMaxListeners(0);
  const client = Object.assign(emitter, {
    query: queryInSession,
    release: () => {
      onRelease(emitter);
      if (unlock !== undefined)
        void run('ROLLBACK', undefined)
          .catch(() => {})
          .finally(leave);
    },
  });
  return client as typeof client & PgPoolClient;
}

/** A fair lock; acquiring it resolves to the function that releases it. */
function createMutex(): () => Promise<() => void> {
  let last = Promise.resolve();
  return async () => {
    const before = last;
    let unlock = () => {};
    last = new Promise((resolve) => {
      unlock = resolve;
    });
    await before;
    return unlock;
  };
}
