import { AUDIT_KINDS } from '../../domain/records/history.ts';
import type { PostgresEngine } from '../../ports/engine.ts';
import type { Store } from '../../ports/store.ts';
import { historyToJson, newestFirst, readHistory, readSamples, samplesToJson } from './history-json.ts';
import type { StoreLimits } from './limits.ts';
import type { PostgresAudit } from './postgres-audit.ts';
import { alone } from './postgres-tables.ts';

const APPEND = `INSERT INTO ebb_history (compute_id, at_ms, body)
  SELECT * FROM unnest($1::text[], $2::double precision[], $3::text[]) RETURNING id`;
const FORGET_OF_COMPUTE = `DELETE FROM ebb_history WHERE compute_id = $1 AND id <= (
  SELECT id FROM ebb_history WHERE compute_id = $1 ORDER BY id DESC OFFSET $2 LIMIT 1)`;
/** No entry of the future makes others old. */
const OLDEST = 'least($1::double precision, extract(epoch FROM now()) * 1000) - $2::double precision';
const FORGET_OLD_OF_COMPUTE = `DELETE FROM ebb_history WHERE at_ms < ${OLDEST} AND compute_id = $3`;
const FORGET_OLD = `DELETE FROM ebb_history WHERE at_ms < ${OLDEST}`;
const FORGET_OLDEST = `DELETE FROM ebb_history WHERE id <= (SELECT id FROM ebb_history ORDER BY id DESC OFFSET $1 LIMIT 1)`;
const OF_COMPUTE = 'SELECT body FROM ebb_history WHERE compute_id = $1 ORDER BY at_ms DESC, id DESC LIMIT $2';
const OF_ALL = 'SELECT body FROM ebb_history ORDER BY at_ms DESC, id DESC LIMIT $1';
const PUT_SAMPLES = `INSERT INTO ebb_samples (compute_id, body) VALUES ($1, $2)
  ON CONFLICT (compute_id) DO UPDATE SET body = excluded.body`;
const SAMPLES = 'SELECT body FROM ebb_samples WHERE compute_id = $1';

type HistoryAndSamples = Pick<Store, 'appendHistory' | 'audit' | 'history' | 'putSamples' | 'samples'>;

export interface PostgresHistoryOptions {
  engine: PostgresEngine;
  limits: StoreLimits;
  audit: PostgresAudit;
}

export function createPostgresHistory({ engine, limits, audit }: PostgresHistoryOptions): HistoryAndSamples {
  const { pool } = engine;
  /** Counting all entries takes milliseconds, so it is done for one in a hundred of them. */
  const countEvery = Math.ceil(limits.history / 100);

  return {
    audit: audit.audit,
    appendHistory: async (given) => {
      const audited = given.filter(({ kind }) => AUDIT_KINDS.has(kind));
      await audit.add(audited, pool.query.bind(pool));
      if (audited.length > 0) await audit.added();
      const entries = given.filter(({ kind }) => !AUDIT_KINDS.has(kind));
      if (entries.length === 0) return;
      const computeIds = entries.map(({ computeId }) => computeId);
      const texts = entries.map((entry) => historyToJson(entry, limits.historyEntryBytes));
      await alone(engine, 'history', async (client) => {
        const columns = [computeIds, entries.map(({ atMs }) => atMs), texts];
        const { rows } = await client.query<{ id: unknown }>(APPEND, columns);
        const age = [Math.max(...entries.map(({ atMs }) => atMs)), limits.historyMs];
        for (const id of new Set(computeIds)) {
          await client.query(FORGET_OF_COMPUTE, [id, limits.historyPerCompute]);
          await client.query(FORGET_OLD_OF_COMPUTE, [...age, id]);
        }
        if (rows.every(({ id }) => Number(id) % countEvery !== 0)) return;
        await client.query(FORGET_OLD, age);
        await client.query(FORGET_OLDEST, [limits.history]);
      });
    },
    history: async ({ computeId, limit, withoutAudit }) => {
      if (limit < 1) return [];
      const { rows } = await (computeId === undefined
        ? pool.query<{ body: string }>(OF_ALL, [limit])
        : pool.query<{ body: string }>(OF_COMPUTE, [computeId, limit]));
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
