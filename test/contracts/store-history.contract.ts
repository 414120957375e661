import { describe, expect, it } from 'vitest';
import { createStore } from '../../src/adapters/store/create-store.ts';
import type { HistoryEntry } from '../../src/domain/records/history.ts';
import type { Store } from '../../src/ports/store.ts';
import type { TestEngine } from '../support/engines.ts';

const FULL: Required<HistoryEntry> = {
  atMs: 1_700_000_000_000,
  projectId: 'project-1',
  computeId: 'compute-a',
  kind: 'write',
  policy: 'büro "zeiten"',
  setHash: 'a1b2c3',
  revision: 'v12',
  from: { minCu: 1, maxCu: 2, suspendTimeoutSeconds: 300 },
  to: { maxCu: 4 },
  reasons: [{ code: 'window_open', policy: 'büro "zeiten"', message: 'the window is open' }],
  who: 'zoe',
  verified: true,
  requestId: 'r-1',
  owner: 'team-web',
  id: '0001abcd',
};

const entry = (computeId: string, atMs: number): HistoryEntry => ({
  atMs,
  projectId: 'project-1',
  computeId,
  kind: 'held',
  setHash: 'a1',
  reasons: [],
});

export function describeHistory(current: () => { store: Store; on: TestEngine }): void {
  describe('history', () => {
    it('gives entries whole and newest first, of one compute or of all', async () => {
      const { store, on } = current();
      await store.appendHistory([]);
      await store.appendHistory([FULL, entry('compute-b', FULL.atMs + 1), entry('compute-a', FULL.atMs + 2)]);
      await store.appendHistory([entry('compute-c', FULL.atMs + 3)]);
      const other = await createStore(on);
      expect(await other.history({ computeId: 'compute-a', limit: 10 })).toEqual([
        entry('compute-a', FULL.atMs + 2),
        FULL,
      ]);
      const all = await other.history({ limit: 3 });
      expect(all.map(({ computeId }) => computeId)).toEqual(['compute-c', 'compute-a', 'compute-b']);
      expect(await store.history({ computeId: 'compute-a', limit: 1 })).toHaveLength(1);
      expect(await store.history({ computeId: 'unknown', limit: 9 })).toEqual([]);
      expect(await store.history({ limit: 0 })).toEqual([]);
    });

    it('keeps the newest of each compute', async () => {
      const { on } = current();
      const store = await createStore({ ...on, limits: { historyPerCompute: 3 } });
      await store.appendHistory([1, 2, 3, 4, 5].map((atMs) => entry('compute-a', atMs)));
      for (const atMs of [6, 8]) await store.appendHistory([entry('compute-b', atMs), entry('compute-a', atMs + 1)]);
      const kept = (await store.history({ limit: 99 })).map(({ computeId, atMs }) => `${computeId} ${atMs}`);
      expect(kept).toEqual(['compute-a 9', 'compute-b 8', 'compute-a 7', 'compute-b 6', 'compute-a 5']);
    });

    it('keeps 200 entries of a compute, in at most 1 KB each, and those of 90 days', async () => {
      const { store } = current();
      const dayMs = 86_400_000;
      const long = { code: 'window_open', policy: 'p'.repeat(500), message: '✓'.repeat(500) };
      const reasons = Array.from({ length: 9 }, () => long);
      const busy = Array.from({ length: 250 }, (_, n) => ({ ...entry('compute-a', 100 * dayMs + n), reasons }));
      for (const start of [0, 90, 180]) await store.appendHistory(busy.slice(start, start + 90));
      const kept = await store.history({ computeId: 'compute-a', limit: 999 });
      expect(kept.map(({ atMs }) => atMs)).toEqual(
        busy
          .slice(50)
          .map(({ atMs }) => atMs)
          .toReversed(),
      );
      expect(Buffer.byteLength(JSON.stringify(kept))).toBeLessThanOrEqual(201 * 1024);
      await store.appendHistory([entry('compute-a', 190 * dayMs)]);
      const days = async () =>
        (await store.history({ computeId: 'compute-a', limit: 999 })).map(({ atMs }) => Math.floor(atMs / dayMs));
      expect(new Set(await days())).toEqual(new Set([190, 100]));
      await store.appendHistory([entry('compute-a', 192 * dayMs)]);
      expect(await days()).toEqual([192, 190]);
      await store.appendHistory([entry('compute-a', Date.now() + 9999 * dayMs)]);
      expect(await days()).toHaveLength(1);
    });

    it('lets no entry of the future make others old', async () => {
      const { store } = current();
      const nowMs = Date.now();
      await store.appendHistory([entry('compute-a', nowMs), entry('compute-b', nowMs)]);
      await store.appendHistory([entry('compute-a', nowMs + 1e12)]);
      expect(await store.history({ limit: 9 })).toHaveLength(3);
    });

    it('forgets a compute of which all is too old when others go on', async () => {
      const { on } = current();
      const store = await createStore({ ...on, limits: { historyMs: 10, history: 100 } });
      await store.appendHistory([entry('compute-a', 1), entry('compute-a', 2)]);
      // On Postgres what is old over all computes is looked for now and then.
      for (let n = 0; n < 100; n += 1) await store.appendHistory([entry('compute-b', 100)]);
      expect(await store.history({ computeId: 'compute-a', limit: 9 })).toEqual([]);
    });

    it('keeps so many over all computes, the newest among them', async () => {
      const { on } = current();
      const store = await createStore({ ...on, limits: { history: 50 } });
      for (let n = 1; n <= 40; n += 1) await store.appendHistory([entry(`old-${n}`, n), entry('compute-a', n)]);
      for (let n = 41; n <= 60; n += 1) await store.appendHistory([entry(`new-${n}`, n)]);
      const kept = await store.history({ limit: 1000 });
      expect(kept).toHaveLength(50);
      expect(kept.slice(0, 20).map(({ computeId }) => computeId)).toEqual(
        Array.from({ length: 20 }, (_, n) => `new-${60 - n}`),
      );
    });

    it('shortens an entry whose words would fill the store', async () => {
      const { on } = current();
      const store = await createStore({ ...on, limits: { historyEntryBytes: 1024 } });
      const reasons = Array.from({ length: 30 }, () => ({
        code: 'window_open',
        policy: 'p'.repeat(500),
        message: '✓'.repeat(500),
      }));
      await store.appendHistory([{ ...FULL, policy: '☂'.repeat(5000), who: 'w'.repeat(5000), reasons }]);
      const [read] = await store.history({ limit: 1 });
      expect(Buffer.byteLength(JSON.stringify(read))).toBeLessThanOrEqual(1024);
      expect(read).toMatchObject({ kind: 'write', from: FULL.from, to: FULL.to, setHash: FULL.setHash });
      expect(read?.reasons[0]?.message).toMatch(/^✓+$/);
    });
  });

  describe('samples of connections', () => {
    it('gives back the newest, oldest first, and forgets them with the compute', async () => {
      const { store } = current();
      expect(await store.samples('compute-a')).toEqual([]);
      const samples = Array.from({ length: 40 }, (_, n) => ({ atMs: 1_700_000_000_000 + n, connections: n }));
      await store.putSamples('compute-a', samples.toReversed());
      expect(await store.samples('compute-a')).toEqual(samples.slice(-32));
      const whole = { atMs: 5, connections: 7, maxConnections: 112, sinceMs: 2, countedAtMs: 4, source: 'counts' };
      const part = { atMs: 6, connections: 7, source: 'others' };
      await store.putSamples('compute-a', [whole, part]);
      expect(await store.samples('compute-a')).toEqual([whole, part]);
      await store.putSamples('compute-a', [{ atMs: 5, connections: 7, maxConnections: 112 }]);
      expect(await store.samples('compute-a')).toEqual([{ atMs: 5, connections: 7, maxConnections: 112 }]);
      const lease = await store.acquireLease('project-1', 'daemon-1', 15_000);
      if (lease === undefined) throw new Error('the lease is held');
      expect(await store.deleteRecord('project-1', 'compute-a', { ...lease, token: lease.token + 1 })).toBe(false);
      expect(await store.samples('compute-a')).toHaveLength(1);
      await store.deleteRecord('project-1', 'compute-a', lease);
      expect(await store.samples('compute-a')).toEqual([]);
    });
  });
}
