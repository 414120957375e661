import { describe, expect, it } from 'vitest';
import type { StoreLimits } from '../../src/adapters/store/limits.ts';
import type { OutboxEntry } from '../../src/ports/outbox.ts';
import type { Lease, Store } from '../../src/ports/store.ts';
import { aRecord } from '../support/builders.ts';

const entry = (id: string, receiver = 'ops', body = `{"id":"${id}"}`): OutboxEntry => ({
  ...{ id, receiver, subject: 'compute-a', atMs: 1000, body },
});

/** What every outbox must do; `createStore` gives another store on the same engine, with other limits. */
export function describeOutbox(
  current: () => { store: Store; createStore(limits: Partial<StoreLimits>): Promise<Store> },
): void {
  async function idsOf(store: Store, receiver = 'ops', state: 'waiting' | 'dead' = 'waiting'): Promise<string[]> {
    return (await store.outbox({ receiver, state, limit: 100 })).map(({ id }) => id);
  }

  async function lease(store: Store): Promise<Lease> {
    const locked = await store.acquireLease('project-1', 'daemon-1', 15_000);
    if (!locked) throw new Error('the lease is held');
    return locked;
  }

  describe('the outbox', () => {
    it('gives back what was appended, oldest first, for each receiver', async () => {
      const { store } = current();
      const text = '{"text":"übergroß \\"quoted\\""}';
      await store.appendOutbox([entry('b'), entry('a', 'ops', text), entry('c', 'web')]);
      await store.appendOutbox([entry('d')]);
      expect(await store.outbox({ receiver: 'ops', state: 'waiting', limit: 2 })).toEqual([
        { ...entry('b'), state: 'waiting', tries: 0 },
        { ...entry('a', 'ops', text), state: 'waiting', tries: 0 },
      ]);
      expect(await idsOf(store)).toEqual(['b', 'a', 'd']);
      expect(await idsOf(store, 'web')).toEqual(['c']);
      expect(await idsOf(store, 'nobody')).toEqual([]);
    });

    it('appends nothing twice, also after it was sent', async () => {
      const { store } = current();
      await store.appendOutbox([entry('a'), entry('b')]);
      expect(await store.finishOutbox('a')).toBe(true);
      await store.appendOutbox([entry('a'), entry('b'), entry('c')]);
      expect(await idsOf(store)).toEqual(['b', 'c']);
      expect(await store.finishOutbox('a')).toBe(false);
    });

    it('keeps its place in the order while it is tried again, dead or not', async () => {
      const { store } = current();
      await store.appendOutbox([entry('a'), entry('b'), entry('c')]);
      expect(await store.updateOutbox('a', { state: 'waiting', tries: 1, error: 'answered 500' })).toBe(true);
      expect(await store.updateOutbox('b', { state: 'dead', tries: 1, error: 'answered 400' })).toBe(true);
      expect(await store.updateOutbox('x', { state: 'dead', tries: 1 })).toBe(false);
      expect(await idsOf(store)).toEqual(['a', 'c']);
      expect(await store.outbox({ receiver: 'ops', state: 'dead', limit: 9 })).toEqual([
        { ...entry('b'), state: 'dead', tries: 1, error: 'answered 400' },
      ]);
      expect(await store.updateOutbox('b', { state: 'waiting', tries: 0 })).toBe(true);
      expect(await store.outbox({ receiver: 'ops', state: 'waiting', limit: 9 })).toEqual([
        { ...entry('a'), state: 'waiting', tries: 1, error: 'answered 500' },
        { ...entry('b'), state: 'waiting', tries: 0 },
        { ...entry('c'), state: 'waiting', tries: 0 },
      ]);
    });

    it('counts what there is for each receiver', async () => {
      const { store } = current();
      expect(await store.outboxCounts()).toEqual({ receivers: [], lost: 0 });
      await store.appendOutbox([entry('a', 'web'), { ...entry('b'), atMs: 500 }, entry('c'), entry('d', 'gone')]);
      await store.updateOutbox('a', { state: 'dead', tries: 3, error: 'answered 404' });
      await store.finishOutbox('d');
      expect(await store.outboxCounts()).toEqual({
        receivers: [
          { receiver: 'ops', waiting: 2, dead: 0, oldestAtMs: 500 },
          { receiver: 'web', waiting: 0, dead: 1 },
        ],
        lost: 0,
      });
    });

    it('is bounded: the oldest make room, and those that were not sent are counted as lost', async () => {
      const small = await current().createStore({ outbox: 3 });
      await small.appendOutbox([entry('a'), entry('b'), entry('c')]);
      await small.finishOutbox('a');
      await small.updateOutbox('b', { state: 'dead', tries: 1, error: 'answered 400' });
      await small.appendOutbox([entry('d')]);
      expect(await small.outboxCounts()).toMatchObject({ lost: 0 });
      await small.appendOutbox([entry('e'), entry('f')]);
      expect(await idsOf(small)).toEqual(['d', 'e', 'f']);
      expect(await idsOf(small, 'ops', 'dead')).toEqual([]);
      expect(await small.outboxCounts()).toMatchObject({ lost: 2 });
    });

    it('is appended to in the same step as a record is stored, or not at all', async () => {
      const { store } = current();
      const held = await lease(store);
      const outbox = [entry('a'), entry('b', 'web')];
      expect(await store.putRecord('project-1', 'compute-a', aRecord(), held, { outbox })).toBe(true);
      expect([await idsOf(store), await idsOf(store, 'web')]).toEqual([['a'], ['b']]);
      expect((await store.records('project-1')).size).toBe(1);
      await store.releaseLease(held);
      const more = { outbox: [entry('c')] };
      expect(await store.putRecord('project-1', 'compute-b', aRecord(), held, more)).toBe(false);
      expect(await idsOf(store)).toEqual(['a']);
    });

    it('is bounded for what is stored with records, too', async () => {
      const small = await current().createStore({ outbox: 2 });
      const held = await lease(small);
      for (const id of ['a', 'b', 'c']) {
        await small.putRecord('project-1', 'compute-a', aRecord(), held, { outbox: [entry(id)] });
      }
      expect(await idsOf(small)).toEqual(['b', 'c']);
      expect(await small.outboxCounts()).toMatchObject({ lost: 1 });
    });

    it('appends each once, where many append the same at once', async () => {
      const { store } = current();
      const ids = Array.from({ length: 20 }, (_, index) => `n-${index}`);
      await Promise.all([1, 2, 3, 4].map(() => Promise.all(ids.map((id) => store.appendOutbox([entry(id)])))));
      expect((await idsOf(store)).toSorted()).toEqual(ids.toSorted());
    });
  });
}
