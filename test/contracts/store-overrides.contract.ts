import { describe, expect, it } from 'vitest';
import { createStore } from '../../src/adapters/store/create-store.ts';
import type { Freeze } from '../../src/domain/overrides/freezes.ts';
import type { Hold } from '../../src/domain/overrides/holds.ts';
import type { Store } from '../../src/ports/store.ts';
import type { TestEngine } from '../support/engines.ts';
import { bounded } from '../support/selectors.ts';

const START_MS = 1_700_000_000_000;

/** Every field there is: one that the store forgot would be lost silently. */
const HOLD: Required<Hold> = {
  id: 'h-1',
  projectId: 'project-1',
  computeId: 'compute-a',
  owner: 'Zoë <zoe@example.com>',
  reason: 'load test: "big"\nsecond line',
  createdAtMs: START_MS,
  expiresAtMs: START_MS + 7_200_000,
  size: { minCu: 4, maxCu: 8 },
  suspendTimeoutSeconds: -1,
  freeze: true,
  teams: ['team-web'],
};
const FREEZE: Freeze = {
  id: 'f-1',
  owner: 'zoe',
  reason: 'incident',
  createdAtMs: START_MS,
  expiresAtMs: START_MS + 3_600_000,
  select: bounded({
    accounts: ['main'],
    projects: ['shop-*', '!shop-test'],
    branches: ['main'],
    computes: ['ep-*'],
    regions: ['aws-*'],
    types: ['read_only'],
    branchRoles: ['default'],
    share: 0.5,
    minAgeMs: 60_000,
  }),
  allowRaise: true,
};

const holdAt = (id: string, createdAtMs: number, forMs: number): Hold => ({
  id,
  projectId: 'project-1',
  computeId: 'compute-a',
  owner: 'zoe',
  reason: 'why not',
  createdAtMs,
  expiresAtMs: createdAtMs + forMs,
});

export function describeOverrides(current: () => { store: Store; on: TestEngine }): void {
  describe('holds', () => {
    it('gives back what was put, whole, the oldest first, also to another daemon', async () => {
      const { store, on } = current();
      const later = holdAt('h-0', START_MS + 1, 1000);
      expect(await store.holds(START_MS)).toEqual([]);
      expect(await store.putHold(later)).toEqual({ ok: true });
      expect(await store.putHold(HOLD)).toEqual({ ok: true });
      expect(await store.holds(START_MS)).toEqual([HOLD, later]);
      expect(await (await createStore(on)).holds(START_MS)).toEqual([HOLD, later]);
    });

    it('sees what other daemons put, replace, delete and lose', async () => {
      const { store, on } = current();
      const other = await createStore(on);
      await other.putHold(HOLD);
      expect(await store.holds(START_MS)).toEqual([HOLD]);
      await other.putHold({ ...HOLD, reason: 'another' });
      expect(await store.holds(START_MS)).toMatchObject([{ reason: 'another' }]);
      expect(await other.deleteHold('h-1')).toBe(true);
      expect(await other.deleteHold('h-1')).toBe(false);
      expect(await store.holds(START_MS)).toEqual([]);
      await other.putHold({ ...HOLD, id: 'h-2' });
      expect(await store.holds(START_MS)).toHaveLength(1);
      await on.reset();
      expect(await store.holds(START_MS)).toEqual([]);
    });

    it('tells what was deleted from what was lost, until it would have expired, and does not put it again', async () => {
      const { store, on } = current();
      const other = await createStore(on);
      const seen = async () => {
        const { holds, freezes } = await store.overrides(START_MS);
        return [holds, freezes].map(({ entries, endedIds }) => [entries.map(({ id }) => id), [...endedIds]]);
      };
      await other.putHold(HOLD);
      await other.putFreeze(FREEZE);
      expect(await seen()).toEqual([
        [['h-1'], []],
        [['f-1'], []],
      ]);
      await other.deleteHold('h-1');
      await other.deleteFreeze('f-1');
      expect([await store.putHold(HOLD), await store.putFreeze(FREEZE)]).toEqual([{ ok: true }, { ok: true }]);
      expect(await seen()).toEqual([
        [[], ['h-1']],
        [[], ['f-1']],
      ]);
      await on.reset();
      expect(await seen()).toEqual([
        [[], []],
        [[], []],
      ]);
      await other.putHold(holdAt('h-2', START_MS, 1000));
      await other.deleteHold('h-2');
      await other.putHold(holdAt('h-3', START_MS + 1000, 1000));
      expect(await seen()).toEqual([
        [['h-3'], []],
        [[], []],
      ]);
    });

    it('leaves out those that have expired, at the instant they do', async () => {
      const { store } = current();
      await store.putHold(holdAt('short', START_MS, 1000));
      await store.putHold(holdAt('long', START_MS, 5000));
      const idsAt = async (nowMs: number) => (await store.holds(nowMs)).map(({ id }) => id);
      expect(await idsAt(START_MS + 999)).toEqual(['long', 'short']);
      expect(await idsAt(START_MS + 1000)).toEqual(['long']);
      expect(await idsAt(START_MS + 5000)).toEqual([]);
    });

    it('refuses one too many, makes room for one when another has expired or goes, and always replaces', async () => {
      const { on } = current();
      const store = await createStore({ ...on, limits: { holds: 2 } });
      await store.putHold(holdAt('a', START_MS, 1000));
      await store.putHold(holdAt('b', START_MS, 9000));
      const full = { ok: false, error: { code: 'full', limit: 2 } };
      expect(await store.putHold(holdAt('c', START_MS + 999, 1000))).toEqual(full);
      expect(await store.putHold(holdAt('b', START_MS + 999, 8000))).toEqual({ ok: true });
      expect(await store.putHold(holdAt('c', START_MS + 1000, 1000))).toEqual({ ok: true });
      expect(await store.putHold(holdAt('d', START_MS + 1000, 1000))).toEqual(full);
      await store.deleteHold('c');
      expect(await store.putHold(holdAt('d', START_MS + 1000, 1000))).toEqual({ ok: true });
      expect((await store.holds(START_MS + 1000)).map(({ id }) => id)).toEqual(['b', 'd']);
    });

    it('ignores one that it cannot read and says so once', async () => {
      const { store, on } = current();
      await store.putHold(HOLD);
      await store.putHold({ ...holdAt('broken-hold', START_MS, 1000), owner: 3 } as unknown as Hold);
      expect(await store.holds(START_MS)).toEqual([HOLD]);
      await store.putHold({ ...HOLD, reason: 'read anew' });
      expect(await store.holds(START_MS)).toHaveLength(1);
      expect(on.log.lines.filter(({ fields }) => 'id' in fields && fields.id === 'broken-hold')).toHaveLength(1);
    });
  });

  describe('freezes', () => {
    it('gives back what was put until it expires or is deleted', async () => {
      const { store, on } = current();
      const all: Freeze = { ...FREEZE, id: 'f-2', select: 'all', allowRaise: false, expiresAtMs: START_MS + 10 };
      await store.putFreeze(FREEZE);
      await store.putFreeze(all);
      expect(await (await createStore(on)).freezes(START_MS)).toEqual([FREEZE, all]);
      expect(await store.freezes(START_MS + 10)).toEqual([FREEZE]);
      expect(await store.deleteFreeze('f-1')).toBe(true);
      expect(await store.deleteFreeze('f-1')).toBe(false);
      expect(await store.freezes(START_MS + 10)).toEqual([]);
      expect(await store.holds(START_MS)).toEqual([]);
    });

    it('takes one that it cannot read for a freeze of everything, as long as that one lasts', async () => {
      const { store, on } = current();
      const newer = { ...FREEZE, id: 'newer', select: { likes: 3 } } as unknown as Freeze;
      await store.putFreeze(newer);
      const [read] = await store.freezes(START_MS);
      expect(read).toMatchObject({ id: 'newer', select: 'all', allowRaise: false, expiresAtMs: FREEZE.expiresAtMs });
      expect(await store.freezes(FREEZE.expiresAtMs)).toEqual([]);
      expect(on.log.lines.filter(({ message }) => message.includes('stored freeze'))).toHaveLength(1);
      expect(await store.deleteFreeze('newer')).toBe(true);
      expect(await store.freezes(START_MS)).toEqual([]);
    });

    it('takes one whose selector is beyond the limits for a freeze of everything: an older version may have set it', async () => {
      const { store, on } = current();
      const projects = Array.from({ length: 1000 }, (_, index) => `*a*a*${index}?`);
      await store.putFreeze({ ...FREEZE, select: { projects, minAgeMs: 0 } as unknown as Freeze['select'] });
      expect(await store.freezes(START_MS)).toEqual([{ ...FREEZE, select: 'all' }]);
      expect(on.log.lines.filter(({ message }) => message.includes('beyond the limits'))).toHaveLength(1);
    });
  });

  describe('approvals', () => {
    it('gives them newest first, and forgets the oldest beyond the limit', async () => {
      const { on } = current();
      const store = await createStore({ ...on, limits: { approvals: 3 } });
      for (const n of [1, 2, 3, 4, 5]) await store.approve({ hash: `hash-${n}`, who: 'zoe', atMs: START_MS + n });
      expect(await store.approvals()).toEqual(
        [5, 4, 3].map((n) => ({ hash: `hash-${n}`, who: 'zoe', atMs: START_MS + n })),
      );
    });
  });
}
