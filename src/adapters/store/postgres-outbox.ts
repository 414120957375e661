import type { PostgresEngine } from '../../ports/engine.ts';
import type { OutboxCount, OutboxEntry, OutboxStore, QueuedState } from '../../ports/outbox.ts';
import type { StoreLimits } from './limits.ts';

/**
 * Inserts entries from arrays, which are the parameters from `$first` on. With `held, ` as `from` it inserts only while the lease is held. An
 * entry whose id is known is not inserted: sent entries stay, without their text, so that they are not sent again.
 */
export function insertOutbox(first: number, from = ''): string {
  const types = ['text', 'text', 'text', 'double precision', 'text'];
  const arrays = types.map((type, index) => `$${first + index}::${type}[]`).join(', ');
  return `INSERT INTO ebb_outbox (id, receiver, subject, at_ms, body)
    SELECT given.id, given.receiver, given.subject, given.at_ms, given.body
      FROM ${from}unnest(${arrays}) WITH ORDINALITY AS given (id, receiver, subject, at_ms, body, place) ORDER BY given.place
    ON CONFLICT (id) DO NOTHING`;
}

/** The parameters of {@link insertOutbox}. */
export function outboxColumns(entries: readonly OutboxEntry[]): unknown[] {
  return [
    entries.map(({ id }) => id),
    entries.map(({ receiver }) => receiver),
    entries.map(({ subject }) => subject),
    entries.map(({ atMs }) => atMs),
    entries.map(({ body }) => body),
  ];
}

const APPEND = insertOutbox(1);
const FORGET = `
  WITH gone AS (
    DELETE FROM ebb_outbox WHERE number <= (SELECT number FROM ebb_outbox ORDER BY number DESC OFFSET $1 LIMIT 1) RETURNING state
  ), lost AS (SELECT count(*) AS count FROM gone WHERE state <> 'sent')
  INSERT INTO ebb_meta (key, value) SELECT 'outbox-lost', count::text FROM lost WHERE count > 0
  ON CONFLICT (key) DO UPDATE SET value = (ebb_meta.value::bigint + excluded.value::bigint)::text`;
const LIST = `SELECT id, receiver, subject, at_ms, body, state, tries, error FROM ebb_outbox
  WHERE receiver = $1 AND state = $2 ORDER BY number LIMIT $3`;
const COUNTS = `SELECT receiver, count(*) FILTER (WHERE state = 'waiting') AS waiting, count(*) FILTER (WHERE state = 'dead') AS dead,
    (array_agg(at_ms ORDER BY number) FILTER (WHERE state = 'waiting'))[1] AS oldest
  FROM ebb_outbox WHERE state <> 'sent' GROUP BY receiver ORDER BY receiver`;
const LOST = `SELECT value FROM ebb_meta WHERE key = 'outbox-lost'`;
const UPDATE = `UPDATE ebb_outbox SET state = $2, tries = $3, error = $4 WHERE id = $1 AND state <> 'sent' RETURNING id`;
const FINISH = `UPDATE ebb_outbox SET state = 'sent', body = '', error = NULL WHERE id = $1 AND state <> 'sent' RETURNING id`;

interface Row {
  id: string;
  receiver: string;
  subject: string;
  at_ms: number;
  body: string;
  state: QueuedState;
  tries: number;
  error: string | null;
}

interface CountRow {
  receiver: string;
  waiting: unknown;
  dead: unknown;
  oldest: number | null;
}

export function createPostgresOutbox({ engine, limits }: { engine: PostgresEngine; limits: StoreLimits }) {
  const { pool } = engine;
  /** Finding the oldest entries is a scan of all. It is done at a process's first entry, and then each time that 1 % of the limit were appended. */
  const forgetEvery = Math.ceil(limits.outbox / 100);
  let sinceForgotten = forgetEvery;

  /** Must be called after `count` entries were appended: removes the oldest entries now and then. */
  async function forgetOldest(count: number): Promise<void> {
    sinceForgotten += count;
    if (sinceForgotten < forgetEvery) return;
    sinceForgotten = 0;
    await pool.query(FORGET, [limits.outbox]);
  }

  const outbox: OutboxStore = {
    appendOutbox: async (entries) => {
      if (entries.length === 0) return;
      await pool.query(APPEND, outboxColumns(entries));
      await forgetOldest(entries.length);
    },
    outbox: async ({ receiver, state, limit }) => {
      const { rows } = await pool.query<Row>(LIST, [receiver, state, Math.max(0, limit)]);
      return rows.map(({ at_ms: atMs, error, tries, ...row }) => ({
        ...row,
        atMs: Number(atMs),
        tries: Number(tries),
        ...(error !== null && { error }),
      }));
    },
    outboxCounts: async () => {
      const { rows } = await pool.query<CountRow>(COUNTS, []);
      const lost = await pool.query<{ value: string }>(LOST, []);
      const receivers = rows.map(
        ({ receiver, waiting, dead, oldest }): OutboxCount => ({
          receiver,
          waiting: Number(waiting),
          dead: Number(dead),
          ...(oldest !== null && { oldestAtMs: Number(oldest) }),
        }),
      );
      return { receivers, lost: Number(lost.rows[0]?.value ?? 0) };
    },
    updateOutbox: async (id, { state, tries, error }) =>
      (await pool.query(UPDATE, [id, state, tries, error ?? null])).rows.length > 0,
    finishOutbox: async (id) => (await pool.query(FINISH, [id])).rows.length > 0,
  };
  return { outbox, forgetOldest };
}
