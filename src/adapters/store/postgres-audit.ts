import type { HistoryEntry } from '../../domain/records/history.ts';
import type { PostgresEngine } from '../../ports/engine.ts';
import type { AuditQuery } from '../../ports/store.ts';
import { auditPage, auditPlace, auditToJson } from './history-json.ts';
import type { StoreLimits } from './limits.ts';

export const AUDIT_TABLES = [
  `CREATE TABLE IF NOT EXISTS ebb_audit (
     at_ms double precision NOT NULL, id text NOT NULL, compute_id text NOT NULL, body text NOT NULL, PRIMARY KEY (at_ms, id)
   )`,
  'CREATE INDEX IF NOT EXISTS ebb_audit_of ON ebb_audit (compute_id, at_ms, id)',
] as const;

const ADD = `INSERT INTO ebb_audit (compute_id, at_ms, id, body)
  SELECT * FROM unnest($1::text[], $2::double precision[], $3::text[], $4::text[]) ON CONFLICT DO NOTHING`;

/** Adds an entry if the lease is held (the query `held` has a row). The parameters from `$first` on are {@link PostgresAudit.columns}. */
export const addWhereHeld = (first: number) => `INSERT INTO ebb_audit (compute_id, at_ms, id, body)
  SELECT given.* FROM held, unnest($${first}::text[], $${first + 1}::double precision[], $${first + 2}::text[], $${first + 3}::text[]) AS given`;

const PAGE = (ofCompute: string) => `SELECT at_ms, id, body FROM ebb_audit
  WHERE at_ms >= $1 AND at_ms <= $2 AND (at_ms, id) < ($3::double precision, $4::text) ${ofCompute}
  ORDER BY at_ms DESC, id DESC LIMIT $5`;
const AUDIT_OF_ALL = PAGE('');
const AUDIT_OF_COMPUTE = PAGE('AND compute_id = $6');

/** Entries expire by the present time, if the newest entry has a timestamp in the future. */
const FORGET_OLD = `DELETE FROM ebb_audit WHERE at_ms <
  least((SELECT max(at_ms) FROM ebb_audit), extract(epoch FROM now()) * 1000) - $1::double precision`;
const FORGET_OLDEST = `DELETE FROM ebb_audit WHERE (at_ms, id) <=
  (SELECT at_ms, id FROM ebb_audit ORDER BY at_ms DESC, id DESC OFFSET $1 LIMIT 1)`;
/** Old entries are removed at a process's first addition of entries, and then after this many additions. */
const FORGET_EVERY = 500;

type Query = PostgresEngine['pool']['query'];

export type PostgresAudit = ReturnType<typeof createPostgresAudit>;

export function createPostgresAudit(options: { engine: PostgresEngine; limits: StoreLimits }) {
  const { engine, limits } = options;
  const { pool } = engine;
  let additions = 0;

  function columnsOf(entries: readonly HistoryEntry[]): unknown[] {
    const stored = entries.map((entry) => auditToJson(entry, limits.historyEntryBytes));
    return [
      stored.map(({ computeId }) => computeId),
      stored.map(({ atMs }) => atMs),
      stored.map(({ id }) => id),
      stored.map(({ text }) => text),
    ];
  }

  return {
    /** An entry's parameters; empty lists without an entry. */
    columns: (entry: HistoryEntry | undefined) => columnsOf(entry ? [entry] : []),
    /** Adds entries by `query`, and so in its transaction if it has one. */
    async add(entries: readonly HistoryEntry[], query: Query): Promise<void> {
      if (entries.length > 0) await query(ADD, columnsOf(entries));
    },
    /** Counts an addition, and removes old entries now and then. Entries of holds, freezes and approvals are not counted: they are few. */
    async noteAddition(): Promise<void> {
      additions += 1;
      if (additions % FORGET_EVERY !== 1) return;
      await pool.query(FORGET_OLD, [limits.auditMs]);
      if (limits.audit < Number.MAX_SAFE_INTEGER) await pool.query(FORGET_OLDEST, [limits.audit]);
    },
    async audit({ computeId, sinceMs, untilMs, limit, after }: AuditQuery) {
      if (limit < 1) return { entries: [] };
      const place = auditPlace(after) ?? { atMs: Number.MAX_VALUE, id: '' };
      const params = [sinceMs, untilMs, place.atMs, place.id, limit];
      type Row = { at_ms: number; id: string; body: string };
      const { rows } = await (computeId === undefined
        ? pool.query<Row>(AUDIT_OF_ALL, params)
        : pool.query<Row>(AUDIT_OF_COMPUTE, [...params, computeId]));
      return auditPage(
        rows.map(({ at_ms: atMs, id, body: text }) => ({ atMs, id, text })),
        limit,
      );
    },
  };
}
