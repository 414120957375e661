import { describe, expect, it } from 'vitest';
import { createOperator } from '../../src/app/operator/create-operator.ts';
import { aRecord, at, REAL } from '../support/builders.ts';
import { memoryLog } from '../support/memory-log.ts';
import { createSteppedClock } from '../support/simulated/clock.ts';
import { createMemoryStore } from '../support/simulated/store.ts';

const NOW = at('2026-03-20T12:00:00Z');

describe('a restore of many computes', () => {
  it('reads what is stored once, however many of them nobody knows', async () => {
    const memory = createMemoryStore(createSteppedClock(NOW, () => false));
    const lease = await memory.acquireLease('project-p-one', 'before', 1000);
    if (!lease) throw new Error('the lease is held');
    await memory.putRecord('p-one', 'ep-one', aRecord(), lease);
    await memory.releaseLease(lease);
    let lists = 0;
    const store = {
      ...memory,
      projectIds: () => {
        lists += 1;
        return memory.projectIds();
      },
    };
    const operator = createOperator({
      ...{ store, log: memoryLog(), holder: 'test', ...REAL, now: async () => NOW },
      requestReconciles: async () => {},
    });
    const unknown = Array.from({ length: 50 }, (_, index) => `ep-gone-${index}`);
    const baselines = unknown.map((compute_id) => ({
      ...{ compute_id, min_cu: 1, max_cu: 1, suspend_timeout_seconds: 300 },
    }));
    const computes = [...unknown, 'ep-one'];
    const restored = await operator.restore({ computes, baselines, owner: 'ann', now: false });
    expect(restored).toMatchObject({ ok: true, value: { computes: [{ compute_id: 'ep-one' }] } });
    expect(lists).toBe(1);
  });
});
