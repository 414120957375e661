import { z } from 'zod';
import { parseJson } from '../../common/result.ts';
import { MOST_AHEAD_MS } from '../../domain/overrides/instants-ahead.ts';
import type { PostgresEngine } from '../../ports/engine.ts';
import type { DecisionIdentity, Generation, Store } from '../../ports/store.ts';
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

/** A daemon of 0.1.0 reads and writes number and hash of the policies only. */
const Stored = z.object({
  ...{ number: z.number(), setHash: z.string() },
  ...{ decisionHash: z.string().exactOptional(), decisionVersion: z.number().exactOptional() },
});

type GenerationsAndSlots = Pick<
  Store,
  'raiseGeneration' | 'restoreGeneration' | 'generation' | 'takeSlot' | 'releaseSlot' | 'slotsInUse'
>;

type Query = PostgresEngine['pool']['query'];

export function createPostgresGenerations({ engine }: { engine: PostgresEngine }): GenerationsAndSlots {
  const { pool } = engine;
  return {
    raiseGeneration: (own, over) =>
      alone(engine, 'generation', async (client) => {
        const { last, nowMs } = await read(client.query.bind(client));
        if (last && staysOver(last, own, over)) return last;
        // By the time, so that it grows even if the last one was lost with an emptied store.
        return write(client, { number: Math.max(nowMs, (last?.number ?? 0) + 1), ...own });
      }),
    restoreGeneration: (known) =>
      alone(engine, 'generation', async (client) => {
        const { last } = await read(client.query.bind(client));
        return last && isAsNew(last, known) ? last : write(client, known);
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

/** True if a generation stays current although somebody registers what decides for them. */
export function staysOver(last: Generation, own: DecisionIdentity, over: number | undefined): boolean {
  if (last.setHash === own.setHash && last.decisionHash === own.decisionHash) return true;
  if (over !== undefined) return last.number !== over;
  return (last.decisionVersion ?? 0) > (own.decisionVersion ?? 0);
}

/** One of the same number may lack what a daemon of 0.1.0 did not know when it put it back. */
export function isAsNew(last: Generation, known: Generation): boolean {
  if (last.number !== known.number) return last.number > known.number;
  return last.setHash !== known.setHash || last.decisionHash !== undefined;
}

async function write(client: { query: Query }, generation: Generation): Promise<Generation> {
  await client.query(WRITE, [JSON.stringify(generation)]);
  return generation;
}

async function read(query: Query) {
  const [row] = (await query<{ value: string | null; now_ms: unknown }>(READ)).rows;
  const last = Stored.safeParse(parseJson(row?.value ?? '')).data;
  return { last, nowMs: Number(row?.now_ms) };
}
