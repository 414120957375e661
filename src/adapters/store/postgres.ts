import { randomUUID } from 'node:crypto';
import { MOST_AHEAD_MS } from '../../domain/overrides/instants-ahead.ts';
import type { PostgresEngine } from '../../ports/engine.ts';
import type { Store, UsageStore } from '../../ports/store.ts';
import type { StoreLimits } from './limits.ts';
import type { OverrideReaders } from './override-json.ts';
import { addWhereHeld, createPostgresAudit } from './postgres-audit.ts';
import { createPostgresDocuments } from './postgres-documents.ts';
import { createPostgresGenerations } from './postgres-generations.ts';
import { createPostgresHistory } from './postgres-history.ts';
import { createPostgresOutbox, insertOutbox, outboxColumns } from './postgres-outbox.ts';
import { createPostgresOverrides } from './postgres-overrides.ts';
import { prepareTables } from './postgres-tables.ts';
import { type RecordReader, recordToJson } from './record-json.ts';

interface PostgresStoreOptions {
  engine: PostgresEngine;
  records: RecordReader;
  overrides: OverrideReaders;
  limits: StoreLimits;
}

/** The store on Postgres, in the tables `ebb_…` of the group's schema. Makes them if they are not there. */
export async function createPostgresStore(options: PostgresStoreOptions): Promise<Store> {
  const { engine, records, overrides, limits } = options;
  const { pool } = engine;
  await prepareTables(engine);
  const audit = createPostgresAudit({ engine, limits });
  const { outbox, appended } = createPostgresOutbox({ engine, limits });

  async function rowsOf<Row>(text: string, params: readonly unknown[]): Promise<Row[]> {
    return (await pool.query<Row>(text, params)).rows;
  }

  async function changes(text: string, params: readonly unknown[]): Promise<boolean> {
    return (await rowsOf(text, params)).length > 0;
  }

  return {
    storeId: async () => {
      const [row] = await rowsOf<{ value: string }>(STATEMENTS.storeId, [randomUUID()]);
      return String(row?.value);
    },
    timeMs: async () => {
      const [row] = await rowsOf<{ ms: unknown }>(STATEMENTS.time, []);
      return Number(row?.ms);
    },
    acquireLease: async (name, holder, ttlMs) => {
      const [row] = await rowsOf<{ token: unknown }>(STATEMENTS.acquireLease, [
        name,
        holder,
        ttlMs,
        ttlMs + MOST_AHEAD_MS,
      ]);
      return row === undefined ? undefined : { name, holder, token: Number(row.token) };
    },
    renewLease: ({ name, holder, token }, ttlMs) => changes(STATEMENTS.renewLease, [name, holder, token, ttlMs]),
    releaseLease: async ({ name, holder, token }) => {
      await changes(STATEMENTS.releaseLease, [name, holder, token]);
    },
    records: async (projectId) => {
      const rows = await rowsOf<{ compute_id: string; body: string }>(STATEMENTS.records, [projectId]);
      return records.readAll(
        projectId,
        rows.map(({ compute_id, body }) => [compute_id, body] as const),
      );
    },
    brokenRecords: async () => records.broken,
    putRecord: async (projectId, computeId, record, { name, holder, token }, also = {}) => {
      const { ttlMs = null, outbox: queued = [], audit: entry } = also;
      const own = [name, holder, token, projectId, computeId, recordToJson(record), ttlMs];
      const params = [...own, ...audit.columns(entry)];
      const isStored = await (queued.length === 0
        ? changes(STATEMENTS.putRecord, params)
        : changes(STATEMENTS.putRecordAndAppend, [...params, ...outboxColumns(queued)]));
      if (isStored && queued.length > 0) await appended(queued.length);
      if (isStored && entry) await audit.added();
      return isStored;
    },
    deleteRecord: (projectId, computeId, { name, holder, token }) =>
      changes(STATEMENTS.deleteRecord, [name, holder, token, projectId, computeId]),
    ...createPostgresOverrides({ engine, readers: overrides, limits, audit }),
    ...createPostgresGenerations({ engine }),
    ...createPostgresHistory({ engine, limits, audit }),
    ...outbox,
    ...createPostgresUsage(engine),
    ...createPostgresDocuments(engine),
    projectIds: async () => {
      const rows = await rowsOf<{ project_id: string }>(STATEMENTS.projectIds, []);
      return rows.map((row) => row.project_id);
    },
    close: async () => {},
  };
}

/** The caller's lease, locked against a takeover while the same statement writes. */
const HELD = `held AS (
  SELECT name FROM ebb_lease
   WHERE name = $1 AND holder = $2 AND token = $3 AND expires_at > clock_timestamp() FOR UPDATE
)`;

const AFTER = (parameter: string) => `clock_timestamp() + ${parameter}::double precision * interval '1 millisecond'`;

const putRecord = (also: string) => `
    WITH ${HELD}, prolonged AS (
      UPDATE ebb_lease SET expires_at = ${AFTER('$7')} FROM held WHERE ebb_lease.name = held.name AND $7::double precision IS NOT NULL
    ), audited AS (${addWhereHeld(8)})${also}
    INSERT INTO ebb_record (project_id, compute_id, body) SELECT $4, $5, $6 FROM held
    ON CONFLICT (project_id, compute_id) DO UPDATE SET body = excluded.body RETURNING compute_id`;

/**
 * Each statement is one atomic step. Invariant: each change of a record proves in the same statement that the lease is still
 * the caller's. Those that may be refused return a row if they were not.
 */
const STATEMENTS = {
  storeId: `
    INSERT INTO ebb_meta (key, value) VALUES ('store-id', $1)
    ON CONFLICT (key) DO UPDATE SET value = ebb_meta.value RETURNING value`,
  time: 'SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS ms',
  acquireLease: `
    INSERT INTO ebb_lease (name, holder, token, expires_at)
    VALUES ($1, $2, nextval('ebb_lease_token'), ${AFTER('$3')})
    ON CONFLICT (name) DO UPDATE
      SET holder = excluded.holder, token = nextval('ebb_lease_token'), expires_at = excluded.expires_at
      WHERE ebb_lease.expires_at <= clock_timestamp() OR ebb_lease.expires_at > ${AFTER('$4')}
    RETURNING token`,
  renewLease: `
    UPDATE ebb_lease SET expires_at = ${AFTER('$4')}
    WHERE name = $1 AND holder = $2 AND token = $3 AND expires_at > clock_timestamp() RETURNING name`,
  releaseLease: 'DELETE FROM ebb_lease WHERE name = $1 AND holder = $2 AND token = $3',
  records: 'SELECT compute_id, body FROM ebb_record WHERE project_id = $1',
  putRecord: putRecord(''),
  putRecordAndAppend: putRecord(`, appended AS (${insertOutbox(12, 'held, ')})`),
  deleteRecord: `
    WITH ${HELD}, gone AS (
      DELETE FROM ebb_record USING held WHERE project_id = $4 AND compute_id = $5 RETURNING compute_id
    ), without_samples AS (
      DELETE FROM ebb_samples USING held WHERE compute_id = $5
    )
    SELECT name FROM held`,
  projectIds: 'SELECT DISTINCT project_id FROM ebb_record ORDER BY project_id',
} as const;

/** How many units one statement carries: 3 KB each. */
const UNITS_AT_ONCE = 300;

const UNITS = 'SELECT unit FROM ebb_usage WHERE account = $1 ORDER BY unit';
const USAGE = `SELECT unit, encode(bytes, 'base64') AS bytes FROM ebb_usage WHERE account = $1 AND unit = ANY($2::text[])`;
const PUT = `INSERT INTO ebb_usage (account, unit, bytes)
  SELECT $1, unit, decode(bytes, 'base64') FROM unnest($2::text[], $3::text[]) AS given (unit, bytes)
  ON CONFLICT (account, unit) DO UPDATE SET bytes = excluded.bytes`;
const DELETE = 'DELETE FROM ebb_usage WHERE account = $1 AND unit = ANY($2::text[])';

/** A row for each unit. Bytes travel as base64, which every driver and the embedded engine understand alike. */
function createPostgresUsage({ pool }: PostgresEngine): UsageStore {
  return {
    usageUnits: async (account) => {
      const { rows } = await pool.query<{ unit: string }>(UNITS, [account]);
      return rows.map(({ unit }) => unit);
    },
    usage: async (account, units) => {
      const found = new Map<string, Uint8Array>();
      for (let at = 0; at < units.length; at += UNITS_AT_ONCE) {
        const chunk = units.slice(at, at + UNITS_AT_ONCE);
        const { rows } = await pool.query<{ unit: string; bytes: string }>(USAGE, [account, chunk]);
        for (const { unit, bytes } of rows) found.set(unit, Buffer.from(bytes, 'base64'));
      }
      return found;
    },
    putUsage: async (account, usage) => {
      const entries = [...usage];
      for (let at = 0; at < entries.length; at += UNITS_AT_ONCE) {
        const chunk = entries.slice(at, at + UNITS_AT_ONCE);
        const bytes = chunk.map(([, one]) => Buffer.from(one).toString('base64'));
        await pool.query(PUT, [account, chunk.map(([unit]) => unit), bytes]);
      }
    },
    deleteUsage: async (account, units) => {
      await pool.query(DELETE, [account, [...units]]);
    },
  };
}
