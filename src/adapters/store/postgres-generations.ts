import { z } from 'zod';
import { parseJson } from '../../common/result.ts';
import { MOST_AHEAD_MS } from '../../domain/overrides/instants-ahead.ts';
import type { PostgresEngine } from '../../ports/engine.ts';
import type { Store } from '../../ports/store.ts';
import { alone } from './postgres-tables.ts';
import { sharedAsk } from './shared-ask.ts';

const READ = `SELECT value, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms
  FROM (SELECT 1) one LEFT JOIN ebb_meta ON key = 'generation'`;
const WRITE = `INSERT INTO ebb_meta (key, value) VALUES ('generation', $1)
  ON CONFLICT (key) DO UPDATE SET value = excluded.value`;

const DELETE_ENDED = 'DELETE FROM ebb_slot WHERE until_ms <= $1 OR until_ms > $2';
const HOLDERS = 'SELECT compute_id FROM ebb_slot WHERE policy = $1';
const TAKE = `INSERT INTO ebb_slot (policy, compute_id, until_ms) VALUES ($1, $2, $3)
  ON CONFLICT (policy, compute_id) DO UPDATE SET until_ms = excluded.until_ms`;
const RELEASE = 'DELETE FROM ebb_slot WHERE policy = $1 AND compute_id = $2';
const IN_USE = 'SELECT compute_id FROM ebb_slot WHERE policy = $1 AND until_ms > $2';

const Stored = z.looseObject({ number: z.number(), setHash: z.string() });

type GenerationsAndSlots = Pick<
  Store,
  'raiseGeneration' | 'restoreGeneration' | 'generation' | 'takeSlot' | 'releaseSlot' | 'slotsInUse'
>;

type Query = PostgresEngine['pool']['query'];

export function createPostgresGenerations({ engine }: { engine: PostgresEngine }): GenerationsAndSlots {
  const { pool } = engine;
  return {
    raiseGeneration: (setHash) =>
      alone(engine, 'generation', async (client) => {
        const { last, nowMs } = await read(client.query.bind(client));
        if (last?.setHash === setHash) return last.number;
        // By the time, so that it grows even if the last one was lost with an emptied store.
        const number = Math.max(nowMs, (last?.number ?? 0) + 1);
        await client.query(WRITE, [JSON.stringify({ number, setHash })]);
        return number;
      }),
    restoreGeneration: ({ number, setHash }) =>
      alone(engine, 'generation', async (client) => {
        const { last } = await read(client.query.bind(client));
        if (last !== undefined && last.number >= number) return last.number;
        await client.query(WRITE, [JSON.stringify({ number, setHash })]);
        return number;
      }),
    generation: sharedAsk(async () => (await read(pool.query.bind(pool))).last),
    takeSlot: ({ policy, computeId, allowed, nowMs, untilMs }) =>
      alone(engine, 'slots', async (client) => {
        await client.query(DELETE_ENDED, [nowMs, untilMs + MOST_AHEAD_MS]);
        const holders = (await client.query<{ compute_id: string }>(HOLDERS, [policy])).rows;
        const holds = holders.some((row) => row.compute_id === computeId);
        if (!holds && holders.length >= allowed) return false;
        await client.query(TAKE, [policy, computeId, untilMs]);
        return true;
      }),
    releaseSlot: async (policy, computeId) => {
      await pool.query(RELEASE, [policy, computeId]);
    },
    slotsInUse: async (policy, nowMs) => {
      const { rows } = await pool.query<{ compute_id: string }>(IN_USE, [policy, nowMs]);
      return rows.map((row) => row.compute_id).sort();
    },
  };
}

async function read(query: Query) {
  const [row] = (await query<{ value: string | null; now_ms: unknown }>(READ)).rows;
  const last = Stored.safeParse(parseJson(row?.value ?? '')).data;
  return { last, nowMs: Number(row?.now_ms) };
}
