import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createStore } from '../../src/adapters/store/create-store.ts';
import type { Freeze } from '../../src/domain/overrides/freezes.ts';
import type { Hold } from '../../src/domain/overrides/holds.ts';
import type { DecidedBy, Lease, Store } from '../../src/ports/store.ts';
import { aRecord } from '../support/builders.ts';
import type { TestEngine } from '../support/engines.ts';
import { eventually } from '../support/eventually.ts';

const START_MS = 1_700_000_000_000;
const TTL_MS = 15_000;

const said = {
  owner: 'zoe',
  reason: 'load test',
  createdAtMs: START_MS,
  expiresAtMs: START_MS + 3_600_000,
};
const holdOf = (id: string): Hold => ({ ...said, id, projectId: 'project-1', computeId: 'compute-a', freeze: true });
const freezeOf = (id: string): Freeze => ({ ...said, id, select: 'all', allowRaise: false });

const INTENDED = aRecord({ intent: { fields: { minCu: 1, maxCu: 1 }, atMs: START_MS } });

export function describeIntents(current: () => { store: Store; on: TestEngine }): void {
  async function lock(store: Store, name = 'project-1', ttlMs = TTL_MS): Promise<Lease> {
    const lease = await store.acquireLease(name, 'daemon-1', ttlMs);
    if (lease === undefined) throw new Error('the lease is held');
    return lease;
  }

  async function decide(store: Store): Promise<DecidedBy> {
    const { revision } = await store.overrides(START_MS);
    return { overrides: revision, generation: (await store.generation())?.number ?? 'any' };
  }

  const intend = (store: Store, lease: Lease, decidedBy: DecidedBy, computeId = 'compute-a') =>
    store.putIntent('project-1', computeId, INTENDED, lease, { ttlMs: TTL_MS, decidedBy });

  const idsOf = async (store: Store, projectId?: string) =>
    (await store.pendingWrites(projectId)).map(({ computeId }) => computeId).toSorted();

  describe('pending writes', () => {
    it('are stored while nothing has changed since the decision, in an empty store too', async () => {
      const { store } = current();
      const lease = await lock(store);
      expect(await intend(store, lease, await decide(store))).toBe('stored');
      expect((await store.records('project-1')).get('compute-a')).toEqual(INTENDED);
      await store.raiseGeneration({ setHash: 'set-a' });
      await store.putHold(holdOf('h-1'));
      await store.putFreeze(freezeOf('f-1'));
      expect(await intend(store, lease, await decide(store), 'compute-b')).toBe('stored');
    });

    it('prolong the lease in the same step, and are refused without it', async () => {
      const { store } = current();
      const kept = await lock(store, 'project-1', 1000);
      const short = await lock(store, 'project-2', 1000);
      const decidedBy = await decide(store);
      expect(await intend(store, kept, decidedBy)).toBe('stored');
      await eventually(() => store.deleteRecord('no-project', 'no-compute', short)).toBe(false);
      expect(await intend(store, short, decidedBy, 'compute-b')).toBe('lease_lost');
      expect(await idsOf(store)).toEqual(['compute-a']);
      expect(await store.deleteRecord('no-project', 'no-compute', kept)).toBe(true);
    });

    it.each<[string, (store: Store) => Promise<unknown>]>([
      ['a hold is set', (store) => store.putHold(holdOf('h-2'))],
      ['a hold is replaced', (store) => store.putHold({ ...holdOf('h-1'), size: { minCu: 8, maxCu: 8 } })],
      ['a hold is released', (store) => store.deleteHold('h-1')],
      ['a freeze is set', (store) => store.putFreeze(freezeOf('f-2'))],
      ['a freeze is ended', (store) => store.deleteFreeze('f-1')],
      ['another policy set is loaded', (store) => store.raiseGeneration({ setHash: 'set-b' })],
    ])('are refused once %s, and nothing is stored', async (_, change) => {
      const { store, on } = current();
      const other = await createStore(on);
      await store.raiseGeneration({ setHash: 'set-a' });
      await store.putHold(holdOf('h-1'));
      await store.putFreeze(freezeOf('f-1'));
      const lease = await lock(store);
      const decidedBy = await decide(store);
      await change(other);
      expect(await intend(store, lease, decidedBy)).toBe('outdated');
      expect(await store.records('project-1')).toEqual(new Map());
      expect(await store.pendingWrites()).toEqual([]);
      expect(await intend(store, lease, await decide(store))).toBe('stored');
    });

    it('are refused where no policy set is registered, or another one, as it is by a daemon that has registered none yet', async () => {
      const { store } = current();
      const lease = await lock(store);
      const decidedBy: DecidedBy = { ...(await decide(store)), generation: -1 };
      expect(await intend(store, lease, decidedBy)).toBe('outdated');
      await store.raiseGeneration({ setHash: 'set-a' });
      expect(await intend(store, lease, decidedBy)).toBe('outdated');
    });

    it('are not compared with the policy set where the decision is not one of a registered set', async () => {
      const { store } = current();
      const lease = await lock(store);
      const decidedBy: DecidedBy = { ...(await decide(store)), generation: 'any' };
      await store.raiseGeneration({ setHash: 'set-b' });
      expect(await intend(store, lease, decidedBy)).toBe('stored');
    });

    it('are all found until their answer is recorded, or their compute forgotten', async () => {
      const { store, on } = current();
      const other = await createStore(on);
      const lease = await lock(store);
      const decidedBy = await decide(store);
      for (const id of ['compute-a', 'compute-b', 'compute-c']) await intend(store, lease, decidedBy, id);
      await store.putRecord('project-2', 'compute-d', INTENDED, await lock(store, 'project-2'));
      expect(await idsOf(other)).toEqual(['compute-a', 'compute-b', 'compute-c', 'compute-d']);
      expect(await idsOf(other, 'project-1')).toEqual(['compute-a', 'compute-b', 'compute-c']);
      await store.putRecord('project-1', 'compute-a', aRecord(), lease);
      await store.deleteRecord('project-1', 'compute-b', lease);
      expect(await other.pendingWrites('project-1')).toEqual([
        { projectId: 'project-1', computeId: 'compute-c', record: INTENDED },
      ]);
    });

    it('are either refused, or found by who has set a hold, in whatever order both come', async () => {
      const { store, on } = current();
      const other = await createStore(on);
      const lease = await lock(store);
      let run = 0;
      await fc.assert(
        fc.asyncProperty(fc.boolean(), fc.nat(3), async (holdFirst, turns) => {
          run += 1;
          await store.putRecord('project-1', 'compute-a', aRecord(), lease);
          const decidedBy = await decide(store);
          const hold = async () => {
            await other.putHold(holdOf(`h-race-${run}`));
            return idsOf(other, 'project-1');
          };
          const wait = async () => {
            for (let turn = 0; turn < turns; turn += 1) await new Promise(setImmediate);
          };
          const write = () => intend(store, lease, decidedBy);
          const [first, second] = holdFirst ? [hold, write] : [write, hold];
          const begun = first();
          await wait();
          const results = await Promise.all([begun, second()]);
          const [found, outcome] = holdFirst ? results : results.toReversed();
          expect([outcome, found]).toEqual(outcome === 'stored' ? ['stored', ['compute-a']] : ['outdated', []]);
        }),
        { numRuns: 30 },
      );
    });
  });
}
