import type { PgPool, PgPoolClient, PgQueryResult } from 'bullmq';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { watchPool } from '../../src/adapters/engine/watched-pool.ts';

const PROBE_EVERY_MS = 1_000;

const FULL = Object.assign(new Error('could not extend file: No space left on device'), { code: '53100' });
const READ_ONLY = Object.assign(new Error('cannot execute INSERT in a read-only transaction'), { code: '25006' });
const DUPLICATE = Object.assign(new Error('duplicate key'), { code: '23505' });

/** A database that answers every read, and writes as long as it can. */
function aPool() {
  const disk: { refuses: Error | undefined } = { refuses: undefined };
  const answer: PgQueryResult = { rows: [], rowCount: 0 };
  const query = async (text: string) => {
    if (disk.refuses && /INSERT/.test(text)) throw disk.refuses;
    return answer;
  };
  const client = { query, release() {}, on() {} } as unknown as PgPoolClient;
  const pool = { query, connect: async () => client } as unknown as PgPool;
  const effective: (string | undefined)[] = [];
  const suspects = { full: false };
  const stop = watchPool({ pool, onChange: (error) => effective.push(error?.message), isSuspect: () => suspects.full });
  return { disk, pool, effective, suspects, stop };
}

describe('a database that is watched', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  for (const refusal of [FULL, READ_ONLY]) {
    it(`stays away after "${refusal.message}" whatever it answers, until a write of a probe succeeds`, async () => {
      const { disk, pool, effective } = aPool();
      disk.refuses = refusal;
      await expect(pool.query('INSERT INTO ebb_record')).rejects.toThrow(refusal);
      for (let i = 0; i < 10; i += 1) await pool.query('SELECT 1');
      await vi.advanceTimersByTimeAsync(3 * PROBE_EVERY_MS);
      expect(new Set(effective)).toEqual(new Set([refusal.message]));
      disk.refuses = undefined;
      await vi.advanceTimersByTimeAsync(PROBE_EVERY_MS);
      expect(effective.at(-1)).toBeUndefined();
    });
  }

  it('is away also when only a statement of a transaction says so', async () => {
    const { disk, pool, effective } = aPool();
    disk.refuses = FULL;
    const client = await pool.connect();
    await expect(client.query('INSERT INTO ebb_history')).rejects.toThrow(FULL);
    expect(effective).toEqual([FULL.message]);
  });

  it('is there when it only refuses a statement', async () => {
    const { disk, pool, effective } = aPool();
    disk.refuses = DUPLICATE;
    await expect(pool.query('INSERT INTO ebb_record')).rejects.toThrow(DUPLICATE);
    await vi.advanceTimersByTimeAsync(PROBE_EVERY_MS);
    expect(effective).toEqual([]);
  });

  it('is tried before anything fails where its disk seems to be full', async () => {
    const { disk, effective, suspects, stop } = aPool();
    disk.refuses = FULL;
    await vi.advanceTimersByTimeAsync(PROBE_EVERY_MS);
    expect(effective).toEqual([]);
    suspects.full = true;
    await vi.advanceTimersByTimeAsync(PROBE_EVERY_MS);
    expect(effective).toEqual([FULL.message]);
    stop();
    await vi.advanceTimersByTimeAsync(PROBE_EVERY_MS);
    expect(effective).toHaveLength(1);
  });
});
