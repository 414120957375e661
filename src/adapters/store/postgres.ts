import { randomUUID } from 'node:crypto';
import { MOST_AHEAD_MS } from '../../domain/overrides/instants-ahead.ts';
import type { PostgresEngine } from '../../ports/engine.ts';
import type { Store } from '../../ports/store.ts';
import type { StoreLimits } from './limits.ts';
import type { OverrideReaders } from './override-json.ts';
import { createPostgresGenerations } from './postgres-generations.ts';
import { createPostgresHistory } from './postgres-history.ts';
import { createPostgresOverrides } from './postgres-overrides.ts';
import { STATEMENTS } from './postgres-statements.ts';
import { prepareTables } from './postgres-tables.ts';
import { type RecordReader, recordToJson } from './record-json.ts';

export interface PostgresStoreOptions {
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
    putRecord: (projectId, computeId, record, { name, holder, token }, ttlMs) =>
      changes(STATEMENTS.putRecord, [name, holder, token, projectId, computeId, recordToJson(record), ttlMs ?? null]),
    deleteRecord: (projectId, computeId, { name, holder, token }) =>
      changes(STATEMENTS.deleteRecord, [name, holder, token, projectId, computeId]),
    ...createPostgresOverrides({ engine, readers: overrides, limits }),
    ...createPostgresGenerations({ engine }),
    ...createPostgresHistory({ engine, limits }),
    projectIds: async () => {
      const rows = await rowsOf<{ project_id: string }>(STATEMENTS.projectIds, []);
      return rows.map((row) => row.project_id);
    },
    close: async () => {},
  };
}
