import { describe, expect, it } from 'vitest';
import { createStore } from '../../src/adapters/store/create-store.ts';
import type { HistoryEntry } from '../../src/domain/records/history.ts';
import type { AuditQuery, Store } from '../../src/ports/store.ts';
import { aRecord } from '../support/builders.ts';
import type { TestEngine } from '../support/engines.ts';

const NOW_MS = 1_700_000_000_000;
const DAY_MS = 86_400_000;
const entry = (computeId: string, atMs: number, kind: HistoryEntry['kind'] = 'write'): HistoryEntry => ({
  ...{ atMs, computeId, kind, projectId: 'project-1', setHash: 'a1' },
  reasons: [{ code: 'window_open', message: `${computeId} at ${atMs}` }],
});
const ALL = { sinceMs: 0, untilMs: Number.MAX_SAFE_INTEGER, limit: 100 };

export function describeAudit(current: () => { store: Store; on: TestEngine }): void {
  describeAuditPages(current);

  const read = async (query: Partial<AuditQuery> = {}) => (await current().store.audit({ ...ALL, ...query })).entries;
  const messages = async (query: Partial<AuditQuery> = {}) =>
    (await read(query)).map(({ reasons: [reason] }) => reason?.message);

  describe('audit', () => {
    it('keeps writes and commands, each once, and shows them in the history as well', async () => {
      const { store } = current();
      const kinds = ['write', 'restart', 'hold', 'freeze', 'restore', 'approve', 'refused'] as const;
      const others = ['held', 'operation', 'manual'] as const;
      await store.appendHistory([...kinds, ...others].map((kind, at) => entry('compute-a', NOW_MS + at, kind)));
      expect((await read()).map(({ kind }) => kind)).toEqual([...kinds].reverse());
      const shown = await store.history({ computeId: 'compute-a', limit: 99 });
      expect(shown.map(({ kind }) => kind)).toEqual([...kinds, ...others].reverse());
      const kept = await store.history({ limit: 99, withoutAudit: true });
      expect(kept.map(({ kind }) => kind)).toEqual([...others].reverse());
      expect(await store.history({ limit: 3 })).toHaveLength(3);
    });

    it('is stored in the step of what it belongs to, or not at all', async () => {
      const { on } = current();
      const store = await createStore({ ...on, limits: { holds: 1 } });
      const also = (n: number) => ({ audit: entry('compute-a', NOW_MS + n, 'hold') });
      const said = { owner: 'ann', reason: 'r', createdAtMs: NOW_MS, expiresAtMs: NOW_MS + 1e6 };
      const hold = { ...said, id: 'h-1', projectId: 'p', computeId: 'compute-a', freeze: true as const };
      const freeze = { ...said, id: 'f-1', select: 'all' as const, allowRaise: false };
      await store.putHold(hold, also(1));
      expect(await store.putHold({ ...hold, id: 'h-2' }, also(2))).toMatchObject({ ok: false });
      await store.deleteHold('h-1', also(3));
      expect(await store.deleteHold('h-1', also(4))).toBe(false);
      await store.putFreeze(freeze, also(5));
      await store.deleteFreeze('f-1', also(6));
      await store.approve({ hash: 'abc', who: 'ann', atMs: NOW_MS }, also(7));
      const lease = await store.acquireLease('p', 'daemon-1', 15_000);
      if (!lease) throw new Error('the lease is held');
      const message = { id: 'm-1', receiver: 'web', subject: 'compute-a', atMs: NOW_MS, body: '{}' };
      const both = { ...also(8), outbox: [message], ttlMs: 15_000 };
      expect(await store.putRecord('p', 'compute-a', aRecord(), lease, both)).toBe(true);
      expect(await store.outbox({ receiver: 'web', state: 'waiting', limit: 9 })).toMatchObject([message]);
      const lost = { ...lease, token: lease.token + 1 };
      expect(await store.putRecord('p', 'compute-a', aRecord(), lost, also(9))).toBe(false);
      expect((await read()).map(({ atMs }) => atMs - NOW_MS)).toEqual([8, 7, 6, 5, 3, 1]);
    });

    it('keeps the order of what happens at one instant', async () => {
      await current().store.appendHistory(['b', 'a', 'c'].map((name) => entry(`compute-${name}`, NOW_MS)));
      expect(await messages()).toEqual(['c', 'a', 'b'].map((name) => `compute-${name} at ${NOW_MS}`));
    });

    it('forgets what is too old, also of a compute to which nothing happens any more', async () => {
      const { on } = current();
      const store = await createStore({ ...on, limits: { auditMs: 30 * DAY_MS } });
      await store.appendHistory([
        entry('compute-a', NOW_MS),
        entry('compute-b', NOW_MS),
        entry('compute-b', NOW_MS + DAY_MS),
      ]);
      const later = await createStore({ ...on, limits: { auditMs: 30 * DAY_MS } });
      await later.appendHistory([entry('compute-b', NOW_MS + 30.5 * DAY_MS)]);
      expect((await read()).map(({ atMs }) => (atMs - NOW_MS) / DAY_MS)).toEqual([30.5, 1]);
    });

    it('is bounded where the store is small', async () => {
      const { on } = current();
      const store = await createStore({ ...on, limits: { audit: 5 } });
      for (let n = 0; n < 9; n += 1) await store.appendHistory([entry('compute-a', NOW_MS + n)]);
      const later = await createStore({ ...on, limits: { audit: 5 } });
      await later.appendHistory([entry('compute-a', NOW_MS + 9)]);
      expect((await read()).map(({ atMs }) => atMs - NOW_MS)).toEqual([9, 8, 7, 6, 5]);
    });

    it('lets an entry of the future make no other old', async () => {
      const { store } = current();
      const nowMs = Date.now();
      await store.appendHistory([entry('compute-a', nowMs - 2), entry('compute-a', nowMs + 1e12)]);
      await (await createStore(current().on)).appendHistory([entry('compute-a', nowMs)]);
      expect(await read()).toHaveLength(3);
    });
  });
}

/** Also of stores that keep less. */
export function describeAuditPages(current: () => { store: Store }): void {
  const read = async (query: Partial<AuditQuery>) => (await current().store.audit({ ...ALL, ...query })).entries;

  it('the audit is paged through, all of it, of one compute and between two instants', async () => {
    const { store } = current();
    const many = Array.from({ length: 60 }, (_, n) => entry(`compute-${n % 7}`, NOW_MS + Math.floor(n / 3) * 500_000));
    await store.appendHistory(many);
    const paged: HistoryEntry[] = [];
    for (let after: string | undefined; ; ) {
      const page = await store.audit({ ...ALL, limit: 7, after });
      paged.push(...page.entries);
      after = page.next;
      if (after === undefined) break;
    }
    expect(paged.map(({ atMs }) => atMs)).toEqual(many.map(({ atMs }) => atMs).toReversed());
    expect(new Set(paged.map(({ id }) => id)).size).toBe(60);
    const ofOne = many.filter(({ computeId }) => computeId === 'compute-3').map(({ atMs }) => atMs);
    expect((await read({ computeId: 'compute-3' })).map(({ atMs }) => atMs)).toEqual(ofOne.toReversed());
    const [sinceMs, untilMs] = [NOW_MS + 1_000_000, NOW_MS + 3_000_000];
    const between = many.filter(({ atMs }) => atMs >= sinceMs && atMs <= untilMs);
    expect(await read({ sinceMs, untilMs })).toHaveLength(between.length);
    expect(await read({ computeId: 'unknown' })).toEqual([]);
    expect(await read({ limit: 0 })).toEqual([]);
  });
}
