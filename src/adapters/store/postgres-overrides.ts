import { randomUUID } from 'node:crypto';
import type { PgPoolClient } from 'bullmq';
import type { Freeze } from '../../domain/overrides/freezes.ts';
import type { Hold } from '../../domain/overrides/holds.ts';
import type { PostgresEngine } from '../../ports/engine.ts';
import type { OverrideStore, PutOutcome, WithAudit } from '../../ports/store.ts';
import type { StoreLimits } from './limits.ts';
import type { OverrideReaders } from './override-json.ts';
import type { PostgresAudit } from './postgres-audit.ts';
import { exclusively } from './postgres-tables.ts';
import { createRevisedEntries, type ReadRevised, readersOf } from './revised-entries.ts';

const DELETE_EXPIRED = 'DELETE FROM ebb_override WHERE kind IN ($1, $2) AND expires_at_ms <= $3';
const COUNT_OTHERS = 'SELECT count(*) AS count FROM ebb_override WHERE kind = $1 AND id <> $2';
const IS_THERE = 'SELECT 1 AS there FROM ebb_override WHERE kind = $1 AND id = $2';
const PUT = `INSERT INTO ebb_override (kind, id, expires_at_ms, body) VALUES ($1, $2, $3, $4)
  ON CONFLICT (kind, id) DO UPDATE SET expires_at_ms = excluded.expires_at_ms, body = excluded.body`;
const DELETE = 'DELETE FROM ebb_override WHERE kind = $1 AND id = $2 RETURNING expires_at_ms';
const FORGET_ENDED = `DELETE FROM ebb_override WHERE kind = $1 AND id NOT IN
  (SELECT id FROM ebb_override WHERE kind = $1 ORDER BY expires_at_ms DESC LIMIT $2)`;
const SET_REVISION = `INSERT INTO ebb_meta (key, value) VALUES ($1, $2)
  ON CONFLICT (key) DO UPDATE SET value = excluded.value`;
const REVISION = 'SELECT value FROM ebb_meta WHERE key = $1';
/** Storing a pending write locks this row, so it must exist. */
const FIRST_REVISION = `INSERT INTO ebb_meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO NOTHING`;
/** One statement, so that revision and texts are of one instant. */
const READ = `SELECT m.value AS revision, o.kind, o.id, o.body
  FROM (SELECT max(value) AS value FROM ebb_meta WHERE key = $1) m LEFT JOIN ebb_override o ON o.kind IN ($2, $3)`;
const APPROVE = 'INSERT INTO ebb_approval (at_ms, body) VALUES ($1, $2)';
const FORGET_APPROVALS = `DELETE FROM ebb_approval
  WHERE id NOT IN (SELECT id FROM ebb_approval ORDER BY at_ms DESC, id DESC LIMIT $1)`;
const APPROVALS = 'SELECT body FROM ebb_approval ORDER BY at_ms DESC, id DESC';

type Kind = 'holds' | 'freezes';
const revisionKey = (kind: Kind) => `revision-of-${kind}`;
/** Keys of the revisions of holds and of freezes, in this order. */
export const REVISION_KEYS = [revisionKey('holds'), revisionKey('freezes')] as const;
/** The kind of the rows of overrides that were deleted before their expiry. */
const endedKind = (kind: Kind) => `ended-${kind}`;

export function createPostgresOverrides(options: {
  engine: PostgresEngine;
  readers: OverrideReaders;
  limits: StoreLimits;
  audit: PostgresAudit;
}): OverrideStore {
  const { engine, readers, limits, audit } = options;
  const { pool } = engine;
  const addAudit = (client: PgPoolClient, also: WithAudit = {}) =>
    audit.add(also.audit ? [also.audit] : [], client.query.bind(client));
  const put = (kind: Kind, entry: Hold | Freeze, also?: WithAudit) =>
    exclusively(engine, kind, async (client) => {
      const outcome = await putEntry({ client, kind, entry, limit: limits[kind] });
      if (outcome.ok) await addAudit(client, also);
      return outcome;
    });
  const holds = createRevisedEntries({ read: createReader(engine, 'holds'), parse: readers.hold });
  const freezes = createRevisedEntries({ read: createReader(engine, 'freezes'), parse: readers.freeze });

  const remove = (kind: Kind, id: string, also?: WithAudit) =>
    exclusively(engine, kind, async (client) => {
      const [gone] = (await client.query<{ expires_at_ms: number }>(DELETE, [kind, id])).rows;
      if (!gone) return false;
      await client.query(PUT, [endedKind(kind), id, gone.expires_at_ms, '']);
      await client.query(FORGET_ENDED, [endedKind(kind), limits[kind]]);
      await client.query(SET_REVISION, [revisionKey(kind), randomUUID()]);
      await addAudit(client, also);
      return true;
    });

  return {
    ...readersOf(holds, freezes),
    putHold: (hold, also) => put('holds', hold, also),
    deleteHold: (id, also) => remove('holds', id, also),
    putFreeze: (freeze, also) => put('freezes', freeze, also),
    deleteFreeze: (id, also) => remove('freezes', id, also),
    approve: (approval, also) =>
      exclusively(engine, 'approvals', async (client) => {
        await client.query(APPROVE, [approval.atMs, JSON.stringify(approval)]);
        await client.query(FORGET_APPROVALS, [limits.approvals]);
        await addAudit(client, also);
      }),
    approvals: async () =>
      (await pool.query<{ body: string }>(APPROVALS)).rows.flatMap(({ body }) => readers.approval('', body) ?? []),
  };
}

async function putEntry(options: {
  client: PgPoolClient;
  kind: Kind;
  entry: Hold | Freeze;
  limit: number;
}): Promise<PutOutcome> {
  const { client, kind, entry, limit } = options;
  const { id, createdAtMs, expiresAtMs } = entry;
  await client.query(DELETE_EXPIRED, [kind, endedKind(kind), createdAtMs]);
  // An override that was ended stays ended.
  if ((await client.query(IS_THERE, [endedKind(kind), id])).rows.length > 0) return { ok: true };
  await client.query(SET_REVISION, [revisionKey(kind), randomUUID()]);
  const { rows } = await client.query<{ count: unknown }>(COUNT_OTHERS, [kind, id]);
  const isThere = (await client.query(IS_THERE, [kind, id])).rows.length > 0;
  if (!isThere && Number(rows[0]?.count) >= limit) return { ok: false, error: { code: 'full', limit } };
  await client.query(PUT, [kind, id, expiresAtMs, JSON.stringify(entry)]);
  return { ok: true };
}

function createReader({ pool }: PostgresEngine, kind: Kind): ReadRevised {
  const key = revisionKey(kind);
  return async (knownRevision) => {
    const [current] = (await pool.query<{ value: string }>(REVISION, [key])).rows;
    if (knownRevision !== undefined && current?.value === knownRevision) return undefined;
    if (current === undefined) await pool.query(FIRST_REVISION, [key, randomUUID()]);
    type Row = { revision: string | null; kind: string | null; id: string | null; body: string | null };
    const { rows } = await pool.query<Row>(READ, [key, kind, endedKind(kind)]);
    const texts = new Map<string, string>();
    for (const row of rows) if (row.kind === kind && row.id !== null && row.body !== null) texts.set(row.id, row.body);
    const endedIds = rows.flatMap((row) => (row.kind === endedKind(kind) && row.id !== null ? [row.id] : []));
    return { revision: rows[0]?.revision ?? '', texts, endedIds: new Set(endedIds) };
  };
}
