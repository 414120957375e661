import type { PostgresEngine } from '../../ports/engine.ts';
import type { UsageStore } from '../../ports/store.ts';

/** How many units one statement carries: 3 KB each. */
const UNITS_AT_ONCE = 300;

const UNITS = 'SELECT unit FROM ebb_usage WHERE account = $1 ORDER BY unit';
const USAGE = `SELECT unit, encode(bytes, 'base64') AS bytes FROM ebb_usage WHERE account = $1 AND unit = ANY($2::text[])`;
const PUT = `INSERT INTO ebb_usage (account, unit, bytes)
  SELECT $1, unit, decode(bytes, 'base64') FROM unnest($2::text[], $3::text[]) AS given (unit, bytes)
  ON CONFLICT (account, unit) DO UPDATE SET bytes = excluded.bytes`;
const DELETE = 'DELETE FROM ebb_usage WHERE account = $1 AND unit = ANY($2::text[])';

/** A row for each unit. Bytes travel as base64, which every driver and the embedded engine understand alike. */
export function createPostgresUsage({ pool }: PostgresEngine): UsageStore {
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
