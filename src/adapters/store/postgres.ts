import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { chunksOf } from '../../common/chunks.ts';
import { parseJson } from '../../common/result.ts';
import { MAX_AHEAD_MS } from '../../domain/overrides/instants-ahead.ts';
import { AUDIT_KINDS } from '../../domain/records/history.ts';
import type { PostgresEngine } from '../../ports/engine.ts';
import type {
  DecisionIdentity,
  Generation,
  GenerationStore,
  HistoryStore,
  IntentOutcome,
  RecordStore,
  SlotStore,
  Store,
  UsageStore,
} from '../../ports/store.ts';
import { historyToJson, newestFirst, readHistory, readSamples, samplesToJson } from './history-json.ts';
import type { StoreLimits } from './limits.ts';
import type { OverrideReaders } from './override-json.ts';
import { addWhereHeld, createPostgresAudit, type PostgresAudit } from './postgres-audit.ts';
import { createPostgresDocuments } from './postgres-documents.ts';
import { createPostgresOutbox, insertOutbox, outboxColumns } from './postgres-outbox.ts';
import { createPostgresOverrides, REVISION_KEYS } from './postgres-overrides.ts';
import { exclusively, HAS_PENDING_WRITE, prepareTables } from './postgres-tables.ts';
import { pendingWritesOf, type RecordReader, recordToJson } from './record-json.ts';
import { revisionsOf, sharedAsk } from './revised-entries.ts';

/** The store on Postgres, in the tables `ebb_…` of the group's schema, which it creates if they are missing. */
export async function createPostgresStore(options: {
  engine: PostgresEngine;
  records: RecordReader;
  overrides: OverrideReaders;
  limits: StoreLimits;
}): Promise<Store> {
  const { engine, records, overrides, limits } = options;
  await prepareTables(engine);
  const audit = createPostgresAudit({ engine, limits });
  const { outbox, forgetOldest } = createPostgresOutbox({ engine, limits });

  const { rowsOf, hasChanged } = queriesOf(engine);

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
      const params = [name, holder, ttlMs, ttlMs + MAX_AHEAD_MS];
      const [row] = await rowsOf<{ token: unknown }>(STATEMENTS.acquireLease, params);
      return row === undefined ? undefined : { name, holder, token: Number(row.token) };
    },
    renewLease: ({ name, holder, token }, ttlMs) => hasChanged(STATEMENTS.renewLease, [name, holder, token, ttlMs]),
    releaseLease: async ({ name, holder, token }) => {
      await hasChanged(STATEMENTS.releaseLease, [name, holder, token]);
    },
    ...createPostgresRecords({ engine, records, audit, forgetOldest }),
    ...createPostgresOverrides({ engine, readers: overrides, limits, audit }),
    ...createPostgresGenerations(engine),
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
    /** False if the statement's condition didn't hold: then it returns no row. */
    hasChanged: async (text: string, params: readonly unknown[]) => (await rowsOf(text, params)).length > 0,
  };
}

function createPostgresRecords(options: {
  engine: PostgresEngine;
  records: RecordReader;
  audit: PostgresAudit;
  forgetOldest(count: number): Promise<void>;
}): RecordStore {
  const { engine, records, audit, forgetOldest } = options;
  const { rowsOf, hasChanged } = queriesOf(engine);
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
      const params = [name, holder, token, projectId, computeId, recordToJson(record), ...audit.columns(entry)];
      const isStored = await (queued.length === 0
        ? hasChanged(STATEMENTS.putRecord, params)
        : hasChanged(STATEMENTS.putRecordAndAppend, [...params, ...outboxColumns(queued)]));
      if (isStored && queued.length > 0) await forgetOldest(queued.length);
      if (isStored && entry) await audit.noteAddition();
      return isStored;
    },
    putIntent: async (projectId, computeId, record, { name, holder, token }, { ttlMs, decidedBy }) => {
      const recordParams = [name, holder, token, projectId, computeId, recordToJson(record), ttlMs];
      const { overrides: revision, generation } = decidedBy;
      // The last parameter is the number of rows that must be unchanged: two revisions, and the generation unless it is `any`.
      const expected = generation === 'any' ? [null, 2] : [generation, 3];
      const params = [...recordParams, ...revisionsOf(revision), ...expected];
      const [row] = await rowsOf<{ outcome: IntentOutcome }>(STATEMENTS.putIntent, params);
      return row?.outcome ?? 'lease_lost';
    },
    pendingWrites: async (projectId) => {
      if (projectId !== undefined) return pendingWritesOf([projectId], readRecords);
      const rows = await rowsOf<{ project_id: string }>(STATEMENTS.projectsWithPendingWrites, []);
      return pendingWritesOf(new Set(rows.map((row) => row.project_id)), readRecords);
    },
    deleteRecord: (projectId, computeId, { name, holder, token }) =>
      hasChanged(STATEMENTS.deleteRecord, [name, holder, token, projectId, computeId]),
    projectIds: async () => {
      const rows = await rowsOf<{ project_id: string }>(STATEMENTS.projectIds, []);
      return rows.map((row) => row.project_id);
    },
  };
}

/** The caller's lease, locked against a takeover until the statement has written. */
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
 * Locks the rows on which the decision rests until the record is stored. A later change of such a row waits. An earlier change makes the
 * condition false, even if it was committed after this statement began.
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
 * Each statement is one atomic step. Invariant: each change of a record checks in the same statement that the lease is still the caller's.
 * Conditional statements return a row if their condition held.
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

/** Units in one statement. A unit of usage has up to 3 KB. */
const UNITS_AT_ONCE = 300;

const USAGE_ACCOUNTS = 'SELECT DISTINCT account FROM ebb_usage ORDER BY account';
const USAGE_UNITS = 'SELECT unit FROM ebb_usage WHERE account = $1 ORDER BY unit';
const USAGE = `SELECT unit, encode(bytes, 'base64') AS bytes FROM ebb_usage WHERE account = $1 AND unit = ANY($2::text[])`;
const PUT_USAGE = `INSERT INTO ebb_usage (account, unit, bytes)
  SELECT $1, unit, decode(bytes, 'base64') FROM unnest($2::text[], $3::text[]) AS given (unit, bytes)
  ON CONFLICT (account, unit) DO UPDATE SET bytes = excluded.bytes`;
const DELETE_USAGE = 'DELETE FROM ebb_usage WHERE account = $1 AND unit = ANY($2::text[])';

/** A row for each unit. Bytes are sent as base64, which drivers and the embedded engine treat alike. */
function createPostgresUsage({ pool }: PostgresEngine): UsageStore {
  return {
    usageAccounts: async () => {
      const { rows } = await pool.query<{ account: string }>(USAGE_ACCOUNTS);
      return rows.map(({ account }) => account).sort();
    },
    usageUnits: async (account) => {
      const { rows } = await pool.query<{ unit: string }>(USAGE_UNITS, [account]);
      return rows.map(({ unit }) => unit);
    },
    usage: async (account, units) => {
      const bytesByUnit = new Map<string, Uint8Array>();
      for (const chunk of chunksOf(units, UNITS_AT_ONCE)) {
        const { rows } = await pool.query<{ unit: string; bytes: string }>(USAGE, [account, chunk]);
        for (const { unit, bytes } of rows) bytesByUnit.set(unit, Buffer.from(bytes, 'base64'));
      }
      return bytesByUnit;
    },
    putUsage: async (account, usage) => {
      for (const chunk of chunksOf([...usage], UNITS_AT_ONCE)) {
        const texts = chunk.map(([, bytes]) => Buffer.from(bytes).toString('base64'));
        await pool.query(PUT_USAGE, [account, chunk.map(([unit]) => unit), texts]);
      }
    },
    deleteUsage: async (account, units) => {
      await pool.query(DELETE_USAGE, [account, [...units]]);
    },
  };
}

const APPEND_HISTORY = `INSERT INTO ebb_history (compute_id, at_ms, body)
  SELECT * FROM unnest($1::text[], $2::double precision[], $3::text[]) RETURNING id`;
const FORGET_OF_COMPUTE = `DELETE FROM ebb_history WHERE compute_id = $1 AND id <= (
  SELECT id FROM ebb_history WHERE compute_id = $1 ORDER BY id DESC OFFSET $2 LIMIT 1)`;
/** Entries expire by the present time, if the newest entry has a timestamp in the future. */
const OLDEST = 'least($1::double precision, extract(epoch FROM now()) * 1000) - $2::double precision';
const FORGET_OLD_OF_COMPUTE = `DELETE FROM ebb_history WHERE at_ms < ${OLDEST} AND compute_id = $3`;
const FORGET_OLD = `DELETE FROM ebb_history WHERE at_ms < ${OLDEST}`;
const FORGET_OLDEST = `DELETE FROM ebb_history WHERE id <= (SELECT id FROM ebb_history ORDER BY id DESC OFFSET $1 LIMIT 1)`;
const HISTORY_OF_COMPUTE = 'SELECT body FROM ebb_history WHERE compute_id = $1 ORDER BY at_ms DESC, id DESC LIMIT $2';
const HISTORY_OF_ALL = 'SELECT body FROM ebb_history ORDER BY at_ms DESC, id DESC LIMIT $1';
const PUT_SAMPLES = `INSERT INTO ebb_samples (compute_id, body) VALUES ($1, $2)
  ON CONFLICT (compute_id) DO UPDATE SET body = excluded.body`;
const SAMPLES = 'SELECT body FROM ebb_samples WHERE compute_id = $1';

function createPostgresHistory(options: {
  engine: PostgresEngine;
  limits: StoreLimits;
  audit: PostgresAudit;
}): HistoryStore {
  const { engine, limits, audit } = options;
  const { pool } = engine;
  /** Finding the oldest entries is a scan of all. It is done each time that 1 % of the limit were added. */
  const forgetEvery = Math.ceil(limits.history / 100);

  return {
    audit: audit.audit,
    appendHistory: async (all) => {
      const audited = all.filter(({ kind }) => AUDIT_KINDS.has(kind));
      await audit.add(audited, pool.query.bind(pool));
      if (audited.length > 0) await audit.noteAddition();
      const entries = all.filter(({ kind }) => !AUDIT_KINDS.has(kind));
      if (entries.length === 0) return;
      const computeIds = entries.map(({ computeId }) => computeId);
      const texts = entries.map((entry) => historyToJson(entry, limits.historyEntryBytes));
      await exclusively(engine, 'history', async (client) => {
        const columns = [computeIds, entries.map(({ atMs }) => atMs), texts];
        const { rows } = await client.query<{ id: unknown }>(APPEND_HISTORY, columns);
        const age = [Math.max(...entries.map(({ atMs }) => atMs)), limits.historyMs];
        for (const id of new Set(computeIds)) {
          await client.query(FORGET_OF_COMPUTE, [id, limits.historyPerCompute]);
          await client.query(FORGET_OLD_OF_COMPUTE, [...age, id]);
        }
        if (rows.every(({ id }) => Number(id) % forgetEvery !== 0)) return;
        await client.query(FORGET_OLD, age);
        await client.query(FORGET_OLDEST, [limits.history]);
      });
    },
    history: async ({ computeId, limit, withoutAudit }) => {
      if (limit < 1) return [];
      const { rows } = await (computeId === undefined
        ? pool.query<{ body: string }>(HISTORY_OF_ALL, [limit])
        : pool.query<{ body: string }>(HISTORY_OF_COMPUTE, [computeId, limit]));
      const entries = rows.flatMap(({ body }) => readHistory(body) ?? []);
      if (withoutAudit) return entries;
      const audited = await audit.audit({ computeId, limit, sinceMs: 0, untilMs: Number.MAX_VALUE });
      return newestFirst([...audited.entries, ...entries], limit);
    },
    putSamples: async (computeId, samples) => {
      await pool.query(PUT_SAMPLES, [computeId, samplesToJson(samples, limits.samples)]);
    },
    samples: async (computeId) => readSamples((await pool.query<{ body: string }>(SAMPLES, [computeId])).rows[0]?.body),
  };
}

const READ_GENERATION = `SELECT value, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms
  FROM (SELECT 1) one LEFT JOIN ebb_meta ON key = 'generation'`;
const WRITE_GENERATION = `INSERT INTO ebb_meta (key, value) VALUES ('generation', $1)
  ON CONFLICT (key) DO UPDATE SET value = excluded.value`;

const DELETE_ENDED_SLOTS = 'DELETE FROM ebb_slot WHERE until_ms <= $1 OR until_ms > $2';
const SLOT_HOLDERS = 'SELECT compute_id FROM ebb_slot WHERE policy = $1';
const TAKE_SLOT = `INSERT INTO ebb_slot (policy, compute_id, until_ms) VALUES ($1, $2, $3)
  ON CONFLICT (policy, compute_id) DO UPDATE SET until_ms = excluded.until_ms`;
const RELEASE_SLOT = 'DELETE FROM ebb_slot WHERE policy = $1 AND compute_id = $2';
const SLOTS_IN_USE = 'SELECT compute_id FROM ebb_slot WHERE policy = $1 AND until_ms > $2';

/** A daemon of 0.1.0 reads and writes only `number` and `setHash`. */
const StoredGeneration = z.object({
  number: z.number(),
  setHash: z.string(),
  decisionHash: z.string().exactOptional(),
  decisionVersion: z.number().exactOptional(),
});

type Query = PostgresEngine['pool']['query'];

function createPostgresGenerations(engine: PostgresEngine): GenerationStore & SlotStore {
  const { pool } = engine;
  return {
    raiseGeneration: (own, onlyReplacing) =>
      exclusively(engine, 'generation', async (client) => {
        const { last, nowMs } = await readGeneration(client.query.bind(client));
        if (last && stays(last, own, onlyReplacing)) return last;
        // The number comes from the clock, so that it grows even if the last number was lost with an emptied store.
        return writeGeneration(client, { number: Math.max(nowMs, (last?.number ?? 0) + 1), ...own });
      }),
    restoreGeneration: (known) =>
      exclusively(engine, 'generation', async (client) => {
        const { last } = await readGeneration(client.query.bind(client));
        return last && isAsNew(last, known) ? last : writeGeneration(client, known);
      }),
    generation: sharedAsk(async () => (await readGeneration(pool.query.bind(pool))).last),
    takeSlot: ({ policy, computeId, allowed, nowMs, untilMs }) =>
      exclusively(engine, 'slots', async (client) => {
        await client.query(DELETE_ENDED_SLOTS, [nowMs, untilMs + MAX_AHEAD_MS]);
        const holders = (await client.query<{ compute_id: string }>(SLOT_HOLDERS, [policy])).rows;
        const holds = holders.some((row) => row.compute_id === computeId);
        if (!holds && holders.length >= allowed) return false;
        await client.query(TAKE_SLOT, [policy, computeId, untilMs]);
        return true;
      }),
    releaseSlot: async (policy, computeId) => {
      await pool.query(RELEASE_SLOT, [policy, computeId]);
    },
    slotsInUse: async (policy, nowMs) => {
      const { rows } = await pool.query<{ compute_id: string }>(SLOTS_IN_USE, [policy, nowMs]);
      return rows.map((row) => row.compute_id).sort();
    },
  };
}

/** True if the current generation stays when a daemon registers its own; see {@link GenerationStore.raiseGeneration}. */
export function stays(last: Generation, own: DecisionIdentity, onlyReplacing: number | undefined): boolean {
  if (last.setHash === own.setHash && last.decisionHash === own.decisionHash) return true;
  if (onlyReplacing !== undefined) return last.number !== onlyReplacing;
  return (last.decisionVersion ?? 0) > (own.decisionVersion ?? 0);
}

/**
 * True if the stored generation `last` stays when `known` is restored. With the same number it is replaced if it lacks fields, because a daemon
 * of 0.1.0 has stored it again.
 */
export function isAsNew(last: Generation, known: Generation): boolean {
  if (last.number !== known.number) return last.number > known.number;
  return last.setHash !== known.setHash || last.decisionHash !== undefined;
}

async function writeGeneration(client: { query: Query }, generation: Generation): Promise<Generation> {
  await client.query(WRITE_GENERATION, [JSON.stringify(generation)]);
  return generation;
}

async function readGeneration(query: Query) {
  const [row] = (await query<{ value: string | null; now_ms: unknown }>(READ_GENERATION)).rows;
  const last = StoredGeneration.safeParse(parseJson(row?.value ?? '')).data;
  return { last, nowMs: Number(row?.now_ms) };
}
