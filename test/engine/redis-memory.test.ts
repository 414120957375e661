import { afterAll, beforeAll, expect, it } from 'vitest';
import { createStore } from '../../src/adapters/store/create-store.ts';
import type { ComputeRecord } from '../../src/domain/records/compute-record.ts';
import { redisTestEngine, type TestEngine } from '../support/engines.ts';
import { describeWith } from '../support/requirements.ts';

const COMPUTES = 1000;
const START_MS = 1_700_000_000_000;

/** A compute that was changed a while ago, by a policy, and has nothing under way. */
const TYPICAL: ComputeRecord = {
  baseline: { minCu: 0.25, maxCu: 2, suspendTimeoutSeconds: 300 },
  firstSeenAtMs: START_MS,
  enforcedSinceMs: START_MS,
  lastApplied: { minCu: 1, maxCu: 4, suspendTimeoutSeconds: -1 },
  lastDecidedAtMs: START_MS + 1,
  lastSentAtMs: START_MS + 2,
  openOperations: [],
};

describeWith('redis-server', 'what a compute takes of Redis', () => {
  let on: TestEngine;
  beforeAll(async () => {
    on = await redisTestEngine();
  });
  afterAll(() => on.close());

  it('is at most 2 KB, with all its samples and the share of the history that 10,000 computes have', async () => {
    const store = await createStore(on);
    const lease = await store.acquireLease('any', 'daemon-1', 600_000);
    if (lease === undefined) throw new Error('the lease is held');
    for (let n = 0; n < COMPUTES; n += 1) {
      const [projectId, computeId] = [`restless-meadow-${10_000_000 + n}`, `ep-quiet-forest-a${100_000 + n}`];
      await store.putRecord(projectId, computeId, TYPICAL, lease);
      await store.putSamples(computeId, Array.from({ length: 32 }, (_, i) => ({ atMs: START_MS + i * 30_000, connections: i, maxConnections: 450 }))); // biome-ignore format: one line
      await store.appendHistory([
        {
          atMs: START_MS,
          projectId,
          computeId,
          kind: 'write',
          policy: 'office-hours',
          setHash: '0123456789abcdef',
          from: TYPICAL.baseline,
          to: TYPICAL.lastApplied,
          reasons: [
            { code: 'window_open', policy: 'office-hours', message: 'the window "mon-fri 08:00-18:00" is open' },
          ],
        },
      ]);
    }
    expect((await bytesOfStore(on)) / COMPUTES).toBeLessThanOrEqual(2048);
  });
});

/** What Redis itself says that every key of the store takes, with what holds the key. */
async function bytesOfStore({ engine }: TestEngine): Promise<number> {
  if (engine.kind !== 'redis') throw new Error('not on Redis');
  const keys = await engine.commands.keys(`${engine.prefix}:store:*`);
  const sizes = await Promise.all(keys.map((key) => engine.commands.memory('USAGE', key, 'SAMPLES', 0)));
  return sizes.reduce<number>((sum, bytes) => sum + Number(bytes), 0);
}
