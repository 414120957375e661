import { describe, expect, it } from 'vitest';
import { createStore } from '../../src/adapters/store/create-store.ts';
import type { Store } from '../../src/ports/store.ts';
import type { TestEngine } from '../support/engines.ts';

/** Bytes of every value, as many as a unit has. */
const bytesOf = (seed: number) => Uint8Array.from({ length: 2960 }, (_, index) => (index * 7 + seed) % 256);

const plain = (usage: ReadonlyMap<string, Uint8Array>) =>
  Object.fromEntries([...usage].map(([unit, bytes]) => [unit, [...bytes]]));

export function describeUsage(current: () => { store: Store; on: TestEngine }): void {
  describe('usage', () => {
    it('keeps the bytes of units by account, whatever they are', async () => {
      const { store, on } = current();
      await store.putUsage(
        'main/org-a',
        new Map([
          ['p-1', bytesOf(1)],
          ['p-1/br-1', bytesOf(2)],
        ]),
      );
      await store.putUsage('main/org-b', new Map([['p-1', bytesOf(3)]]));
      await store.putUsage('main/org-a', new Map([['p-1', bytesOf(4)]]));
      const other = await createStore(on);
      expect(await other.usageUnits('main/org-a')).toEqual(['p-1', 'p-1/br-1']);
      expect(plain(await other.usage('main/org-a', ['p-1', 'p-1/br-1', 'p-9']))).toEqual({
        'p-1': [...bytesOf(4)],
        'p-1/br-1': [...bytesOf(2)],
      });
      expect(plain(await other.usage('main/org-b', ['p-1']))).toEqual({ 'p-1': [...bytesOf(3)] });
    });

    it('keeps more units than a round trip carries, and deletes them', async () => {
      const { store } = current();
      const names = Array.from({ length: 700 }, (_, index) => `p-${String(index).padStart(4, '0')}`);
      await store.putUsage('main/org-a', new Map(names.map((name, index) => [name, bytesOf(index)])));
      expect(await store.usageUnits('main/org-a')).toEqual(names);
      expect((await store.usage('main/org-a', names)).size).toBe(700);
      await store.deleteUsage('main/org-a', names.slice(1));
      expect(await store.usageUnits('main/org-a')).toEqual([names[0]]);
    });

    it('names the accounts of which something is kept', async () => {
      const { store } = current();
      for (const account of ['main/org-b', 'main/org-a/trial/x', 'main/org-c']) {
        await store.putUsage(account, new Map([['p-1', bytesOf(1)]]));
      }
      await store.deleteUsage('main/org-c', ['p-1']);
      expect(await store.usageAccounts()).toEqual(['main/org-a/trial/x', 'main/org-b']);
    });

    it('has nothing of an account that it does not know', async () => {
      const { store } = current();
      expect(await store.usageUnits('nobody')).toEqual([]);
      expect((await store.usage('nobody', ['p-1'])).size).toBe(0);
      await store.putUsage('nobody', new Map());
      expect(await store.usageAccounts()).toEqual([]);
      await store.deleteUsage('nobody', []);
    });
  });
}
