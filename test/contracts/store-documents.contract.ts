import { describe, expect, it } from 'vitest';
import { addRelease, openBudgets, readBudgets, readReleases } from '../../src/app/usage/budget-store.ts';
import { advanceBudget } from '../../src/domain/spend/state.ts';
import type { DocumentStore } from '../../src/ports/store.ts';
import { aBudget } from '../support/builders.ts';

const { state: STATE } = advanceBudget(
  undefined,
  { policy: 'budget', account: 'default', terms: aBudget() },
  {
    ...{
      nowMs: 0,
      month: { fromMs: 0, toMs: 1, untilMs: 0 },
      spent: 120,
      unknownHours: 0,
      unknown: 0,
      knownUntilMs: 0,
    },
    days: new Map(),
  },
);

/** What every store does with documents; `other` gives another daemon's store on the same engine. */
export function describeDocuments(current: () => { store: DocumentStore; other: () => Promise<DocumentStore> }): void {
  describe('shared documents', () => {
    it('are kept by collection and name, for every daemon, until they are deleted', async () => {
      const { store, other } = current();
      expect([await store.document('a', 'one'), (await store.documents('a')).size]).toEqual([undefined, 0]);
      await store.putDocument('a', 'one', '1');
      await store.putDocument('a', 'two', '{"text":"übergroß \\"quoted\\" \\\\"}');
      await store.putDocument('b', 'one', 'of another collection');
      await store.putDocument('a', 'one', '');
      const second = await other();
      expect([...(await second.documents('a'))].sort()).toEqual([
        ['one', ''],
        ['two', '{"text":"übergroß \\"quoted\\" \\\\"}'],
      ]);
      expect(await second.document('b', 'one')).toBe('of another collection');
      await second.deleteDocuments('a', ['one', 'nobody']);
      await second.deleteDocuments('a', []);
      expect([...(await store.documents('a')).keys()]).toEqual(['two']);
      expect(await store.document('b', 'one')).toBe('of another collection');
    });

    it('are replaced only as they were read', async () => {
      const { store, other } = current();
      const second = await other();
      expect(await store.replaceDocument('a', 'one', { was: '1', text: '2' })).toBe(false);
      expect(await store.document('a', 'one')).toBeUndefined();
      expect(await store.replaceDocument('a', 'one', { was: undefined, text: '' })).toBe(true);
      expect(await second.replaceDocument('a', 'one', { was: undefined, text: '2' })).toBe(false);
      expect(await second.replaceDocument('a', 'one', { was: '', text: '2' })).toBe(true);
      expect(await store.replaceDocument('a', 'one', { was: '', text: '3' })).toBe(false);
      expect(await store.document('a', 'one')).toBe('2');
    });

    it('take one of those who replace at once', async () => {
      const { store, other } = current();
      const stores = [store, await other()];
      const replaced = await Promise.all(
        Array.from({ length: 10 }, (_, index) =>
          (stores[index % 2] ?? store).replaceDocument('a', 'one', { was: undefined, text: String(index) }),
        ),
      );
      expect(replaced.filter((isReplaced) => isReplaced)).toHaveLength(1);
      expect(await store.document('a', 'one')).toBe(String(replaced.indexOf(true)));
    });
  });

  describe('budgets', () => {
    it('are kept with a version', async () => {
      const { store, other } = current();
      expect(await readBudgets(store)).toBeUndefined();
      expect(await (await openBudgets(store)).replace([STATE])).toBe(true);
      expect(await readBudgets(await other())).toEqual([STATE]);
      await store.putDocument('budgets', 'all', JSON.stringify({ version: 2, value: [] }));
      expect(await readBudgets(store)).toBeUndefined();
      await store.putDocument('budgets', 'all', 'cut o');
      expect(await readBudgets(store)).toBeUndefined();
    });

    it('are not overwritten by a leader that read them before another one decided', async () => {
      const { store, other } = current();
      const slow = await openBudgets(store);
      const decided = { ...STATE, spent: 130 };
      expect(await (await openBudgets(await other())).replace([decided])).toBe(true);
      expect(await slow.replace([])).toBe(false);
      expect(await readBudgets(store)).toEqual([decided]);
    });

    it('keep every release of people who release at once, and of a budget the newest', async () => {
      const { store, other } = current();
      const stores = [store, await other()];
      expect(await readReleases(store)).toBeUndefined();
      const policies = Array.from({ length: 8 }, (_, index) => `budget-${index}`);
      await Promise.all(
        policies.map((policy, index) => addRelease(stores[index % 2] ?? store, { policy, who: 'ann', atMs: 1 })),
      );
      await addRelease(store, { policy: 'budget-0', who: 'bob', atMs: 2 });
      const releases = (await readReleases(store)) ?? [];
      expect(releases.map(({ policy }) => policy).sort()).toEqual(policies);
      expect(releases.at(-1)).toEqual({ policy: 'budget-0', who: 'bob', atMs: 2 });
    });
  });
}
