import type { PgPoolClient } from 'bullmq';
import { type PostgresEngine, transaction } from '../../ports/engine.ts';
import { AUDIT_TABLES } from './postgres-audit.ts';
import { DOCUMENT_TABLES } from './postgres-documents.ts';

/** Selects rows of records with a pending write. Texts inside the record can't match, since their quotes are escaped. */
export const HAS_PENDING_WRITE = `body LIKE '%"intent":{%'`;

const TABLES = [
  'CREATE TABLE IF NOT EXISTS ebb_meta (key text PRIMARY KEY, value text NOT NULL)',
  'CREATE SEQUENCE IF NOT EXISTS ebb_lease_token',
  `CREATE TABLE IF NOT EXISTS ebb_lease (
     name text PRIMARY KEY, holder text NOT NULL, token bigint NOT NULL, expires_at timestamptz NOT NULL
   )`,
  `CREATE TABLE IF NOT EXISTS ebb_record (
     project_id text NOT NULL, compute_id text NOT NULL, body text NOT NULL, PRIMARY KEY (project_id, compute_id)
   )`,
  `CREATE INDEX IF NOT EXISTS ebb_record_pending ON ebb_record (project_id) WHERE ${HAS_PENDING_WRITE}`,
  // Instants are milliseconds of the clock port's time, which may run faster than the server's.
  `CREATE TABLE IF NOT EXISTS ebb_override (
     kind text NOT NULL, id text NOT NULL, expires_at_ms double precision NOT NULL, body text NOT NULL, PRIMARY KEY (kind, id)
   )`,
  'CREATE TABLE IF NOT EXISTS ebb_approval (id bigserial PRIMARY KEY, at_ms double precision NOT NULL, body text NOT NULL)',
  `CREATE TABLE IF NOT EXISTS ebb_slot (
     policy text NOT NULL, compute_id text NOT NULL, until_ms double precision NOT NULL, PRIMARY KEY (policy, compute_id)
   )`,
  'CREATE TABLE IF NOT EXISTS ebb_history (id bigserial PRIMARY KEY, compute_id text NOT NULL, at_ms double precision NOT NULL, body text NOT NULL)',
  'CREATE INDEX IF NOT EXISTS ebb_history_of ON ebb_history (compute_id, id)',
  `CREATE TABLE IF NOT EXISTS ebb_usage (
     account text NOT NULL, unit text NOT NULL, bytes bytea NOT NULL, PRIMARY KEY (account, unit)
   )`,
  `CREATE TABLE IF NOT EXISTS ebb_outbox (
     number bigserial PRIMARY KEY, id text NOT NULL UNIQUE, receiver text NOT NULL, subject text NOT NULL, at_ms double precision NOT NULL,
     body text NOT NULL, state text NOT NULL DEFAULT 'waiting', tries integer NOT NULL DEFAULT 0, error text
   )`,
  `CREATE INDEX IF NOT EXISTS ebb_outbox_unsent ON ebb_outbox (receiver, number) WHERE state <> 'sent'`,
  'CREATE TABLE IF NOT EXISTS ebb_samples (compute_id text PRIMARY KEY, body text NOT NULL)',
  ...DOCUMENT_TABLES,
  ...AUDIT_TABLES,
] as const;

/** The first key of the store's advisory locks; other users of the server must take another one. */
const LOCK_CLASS = 0x656262;

/** Creates missing tables, one daemon at a time: CREATE … IF NOT EXISTS fails when two run it together. */
export async function prepareTables(engine: PostgresEngine): Promise<void> {
  await exclusively(engine, 'tables', async (client) => {
    for (const table of TABLES) await client.query(table);
  });
}

/** Runs one transaction at a time for each name, over all daemons of a group. */
export function exclusively<Result>(
  engine: PostgresEngine,
  name: string,
  work: (client: PgPoolClient) => Promise<Result>,
): Promise<Result> {
  return transaction(engine, async (client) => {
    await client.query('SELECT pg_advisory_xact_lock($1, hashtext($2))', [LOCK_CLASS, `${engine.schema}.${name}`]);
    return work(client);
  });
}
