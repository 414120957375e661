import { randomUUID } from 'node:crypto';
import { MOST_AHEAD_MS } from '../../domain/overrides/instants-ahead.ts';
import type { PostgresEngine } from '../../ports/engine.ts';
import type { IntentOutcome, Store, UsageStore } from '../../ports/store.ts';
import type { StoreLimits } from './limits.ts';
import type { OverrideReaders } from './override-json.ts';
import { addWhereHeld, createPostgresAudit, type PostgresAudit } from './postgres-audit.ts';
import { createPostgresDocuments } from './postgres-documents.ts';
import { createPostgresGenerations } from './postgres-generations.ts';
import { createPostgresHistory } from './postgres-history.ts';
import { createPostgresOutbox, insertOutbox, outboxColumns } from './postgres-outbox.ts';
import { createPostgresOverrides, REVISION_KEYS } from './postgres-overrides.ts';
import { HAS_PENDING_WRITE, prepareTables } from './postgres-tables.ts';
import { pendingWritesOf, type RecordReader, recordToJson } from './record-json.ts';
import { revisionsOf } from './revised-entries.ts';

interface PostgresStoreOptions {
  engine: PostgresEngine;
  records: RecordReader;
  overrides: OverrideReaders;
  limits: StoreLimits;
}

/** The store on Postgres, in the tables `ebb_…` of the group's schema. Makes them if they are not there. */
export async function createPostgresStore(options: PostgresStoreOptions): Promise<Store> {
  const { engine, records, overrides, limits } = options;
  await prepareTables(engine);
  const audit = createPostgresAudit({ engine, limits });
  const { outbox, appended } = createPostgresOutbox({ engine, limits });

  const { rowsOf, changes } = queriesOf(engine);

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
    ...createPostgresRecords({ engine, records, audit, appended }),
    ...createPostgresOverrides({ engine, readers: overrides, limits, audit }),
    ...createPostgresGenerations({ engine }),
    ...createPostgresHistory({ engine, limits, audit }),
    ...outbox,
    ...createPostgresUsage(engine),
    ...createPostgresDocuments(engine),
    close: async () => {},
  };
}

function queriesOf({ pool }: PostgresEngine) {
  async function rowsOf<Row>(text: string, params: readonly unknown[]): Promise<Row[]> {
    return (await pool.query<Row>(text, params)).rows;
  }
  return {
    rowsOf,
    /** True if the statement returned a row: it was not refused. */
    changes: async (text: string, params: readonly unknown[]) => (await rowsOf(text, params)).length > 0,
  };
}

type PostgresRecords = Pick<
  Store,
  'records' | 'brokenRecords' | 'putRecord' | 'putIntent' | 'pendingWrites' | 'deleteRecord' | 'projectIds'
>;

function createPostgresRecords(options: {
  engine: PostgresEngine;
  records: RecordReader;
  audit: PostgresAudit;
  appended(count: number): Promise<void>;
}): PostgresRecords {
  const { engine, records, audit, appended } = options;
  const { rowsOf, changes } = queriesOf(engine);
  const readRecords = async (projectId: string) => {
    const rows = await rowsOf<{ compute_id: string; body: string }>(STATEMENTS.records, [projectId]);
    return records.readAll(
      projectId,
      rows.map(({ compute_id, body }) => [compute_id, body] as const),
    );
  };

  return {
    records: readRecords,
    brokenRecords: async () => records.broken,
    putRecord: async (projectId, computeId, record, { name, holder, token }, also = {}) => {
      const { outbox: queued = [], audit: entry } = also;
      const own = [name, holder, token, projectId, computeId, recordToJson(record)];
      const params = [...own, ...audit.columns(entry)];
      const isStored = await (queued.length === 0
        ? changes(STATEMENTS.putRecord, params)
        : changes(STATEMENTS.putRecordAndAppend, [...params, ...outboxColumns(queued)]));
      if (isStored && queued.length > 0) await appended(queued.length);
      if (isStored && entry) await audit.added();
      return isStored;
    },
    putIntent: async (projectId, computeId, record, { name, holder, token }, { ttlMs, decidedBy }) => {
      const own = [name, holder, token, projectId, computeId, recordToJson(record), ttlMs];
      const { overrides: revision, generation } = decidedBy;
      const isAny = generation === 'any';
      const params = [...own, ...revisionsOf(revision), isAny ? null : generation, isAny ? 2 : 3];
      const [row] = await rowsOf<{ outcome: IntentOutcome }>(STATEMENTS.putIntent, params);
      return row?.outcome ?? 'lease_lost';
    },
    pendingWrites: async (projectId) => {
      if (projectId !== undefined) return pendingWritesOf([projectId], readRecords);
      const rows = await rowsOf<{ project_id: string }>(STATEMENTS.projectsWithPendingWrites, []);
      return pendingWritesOf(new Set(rows.map((row) => row.project_id)), readRecords);
    },
    deleteRecord: (projectId, computeId, { name, holder, token }) =>
      changes(STATEMENTS.deleteRecord, [name, holder, token, projectId, computeId]),
    projectIds: async () => {
      const rows = await rowsOf<{ project_id: string }>(STATEMENTS.projectIds, []);
      return rows.map((row) => row.project_id);
    },
  };
}

/** The caller's lease, locked against a takeover while the same statement writes. */
const HELD = `held AS (
  SELECT name FROM ebb_lease
   WHERE name = $1 AND holder = $2 AND token = $3 AND expires_at > clock_timestamp() FOR UPDATE
)`;

const AFTER = (parameter: string) => `clock_timestamp() + ${parameter}::double precision * interval '1 millisecond'`;

const upsertRecord = (from: string) => `
    INSERT INTO ebb_record (project_id, compute_id, body) SELECT $4, $5, $6 FROM ${from}
    ON CONFLICT (project_id, compute_id) DO UPDATE SET body = excluded.body`;

const putRecord = (also: string) => `
    WITH ${HELD}, audited AS (${addWhereHeld(7)})${also}
    ${upsertRecord('held')} RETURNING compute_id`;

/**
 * Shares the rows that the decision rests on until the record is stored: who is about to change one waits, and who has just changed one
 * makes the condition false, also where that was committed after this statement began.
 */
const PUT_INTENT = `
    WITH ${HELD}, unchanged AS (
      SELECT key FROM ebb_meta
       WHERE key IN ('${REVISION_KEYS.join("', '")}', 'generation') AND CASE key
         WHEN '${REVISION_KEYS[0]}' THEN value = $8 WHEN '${REVISION_KEYS[1]}' THEN value = $9
         ELSE (value::jsonb ->> 'number')::double precision = $10 END
         FOR SHARE
    ), allowed AS (
      SELECT name FROM held WHERE (SELECT count(*) FROM unchanged) = $11::integer
    ), prolonged AS (
      UPDATE ebb_lease SET expires_at = ${AFTER('$7')} FROM allowed WHERE ebb_lease.name = allowed.name
    ), stored AS (${upsertRecord('allowed')})
    SELECT CASE WHEN (SELECT count(*) FROM allowed) = 1 THEN 'stored' ELSE 'outdated' END AS outcome FROM held`;

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
  putRecordAndAppend: putRecord(`, appended AS (${insertOutbox(11, 'held, ')})`),
  putIntent: PUT_INTENT,
  projectsWithPendingWrites: `SELECT project_id FROM ebb_record WHERE ${HAS_PENDING_WRITE}`,
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

const ACCOUNTS = 'SELECT DISTINCT account FROM ebb_usage ORDER BY account';
const UNITS = 'SELECT unit FROM ebb_usage WHERE account = $1 ORDER BY unit';
const USAGE = `SELECT unit, encode(bytes, 'base64') AS bytes FROM ebb_usage WHERE account = $1 AND unit = ANY($2::text[])`;
const PUT = `INSERT INTO ebb_usage (account, unit, bytes)
  SELECT $1, unit, decode(bytes, 'base64') FROM unnest($2::text[], $3::text[]) AS given (unit, bytes)
  ON CONFLICT (account, unit) DO UPDATE SET bytes = excluded.bytes`;
const DELETE = 'DELETE FROM ebb_usage WHERE account = $1 AND unit = ANY($2::text[])';

/** A row for each unit. Bytes travel as base64, which every driver and the embedded engine understand alike. */
function createPostgresUsage({ pool }: PostgresEngine): UsageStore {
  return {
    usageAccounts: async () => {
      const { rows } = await pool.query<{ account: string }>(ACCOUNTS);
      return rows.map(({ account }) => account).sort();
    },
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
