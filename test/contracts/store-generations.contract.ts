import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createStore } from '../../src/adapters/store/create-store.ts';
import type { Store } from '../../src/ports/store.ts';
import type { TestEngine } from '../support/engines.ts';

export function describeGenerations(current: () => { store: Store; on: TestEngine }): void {
  describe('generations', () => {
    it('grows with each other set and stays for the same one, over all daemons', async () => {
      const { store, on } = current();
      const other = await createStore(on);
      expect(await store.generation()).toBeUndefined();
      const first = await store.raiseGeneration('set-a');
      expect(await other.raiseGeneration('set-a')).toBe(first);
      const second = await other.raiseGeneration('set-b');
      expect(second).toBeGreaterThan(first);
      expect(await store.generation()).toEqual({ number: second, setHash: 'set-b' });
      const third = await store.raiseGeneration('set-a');
      expect(third).toBeGreaterThan(second);
      expect(await other.generation()).toEqual({ number: third, setHash: 'set-a' });
    });

    it('gives one number to many that load the same set at once', async () => {
      const { store } = current();
      const numbers = await Promise.all(Array.from({ length: 6 }, () => store.raiseGeneration('set-a')));
      expect(new Set(numbers).size).toBe(1);
    });

    it('keeps the latest set current over a store that came back empty, whichever daemon writes first', async () => {
      const { store, on } = current();
      const older = { number: await store.raiseGeneration('set-a'), setHash: 'set-a' };
      const newer = { number: await store.raiseGeneration('set-b'), setHash: 'set-b' };
      for (const told of [
        [older, newer],
        [newer, older],
      ]) {
        await on.reset();
        for (const known of told) await store.restoreGeneration(known);
        expect(await store.generation()).toEqual(newer);
        expect(await store.restoreGeneration(older)).toBe(newer.number);
      }
      await on.reset();
      // Numbers are instants: an empty store can only give a later one once the clock has gone on.
      await expect.poll(() => Date.now(), { interval: 1 }).toBeGreaterThan(newer.number);
      expect(await store.raiseGeneration('set-c')).toBeGreaterThan(newer.number);
    });
  });

  describe('slots', () => {
    const slot = (computeId: string, more = {}) => ({
      policy: 'night "hours": {x}',
      computeId,
      allowed: 2,
      nowMs: 1000,
      untilMs: 9000,
      ...more,
    });

    it('gives no more than are allowed, also when many ask at once, and each policy its own', async () => {
      const { store, on } = current();
      const other = await createStore(on);
      const asked = await Promise.all(
        ['a', 'b', 'c', 'd', 'e', 'f'].map((id, n) => (n % 2 === 0 ? store : other).takeSlot(slot(id))),
      );
      expect(asked.filter(Boolean)).toHaveLength(2);
      const locked = ['a', 'b', 'c', 'd', 'e', 'f'].filter((_id, n) => asked[n]);
      expect(await store.slotsInUse(slot('').policy, 1000)).toEqual(locked);
      expect(await store.takeSlot(slot('a', { policy: 'other' }))).toBe(true);
      expect(await store.slotsInUse('other', 1000)).toEqual(['a']);
      expect(await store.takeSlot(slot('a', { policy: 'none', allowed: 0 }))).toBe(false);
    });

    it('lets a holder keep its slot for longer, also when fewer are allowed meanwhile', async () => {
      const { store } = current();
      await store.takeSlot(slot('a'));
      await store.takeSlot(slot('b'));
      expect(await store.takeSlot(slot('b', { allowed: 1, untilMs: 12_000 }))).toBe(true);
      expect(await store.slotsInUse(slot('').policy, 9000)).toEqual(['b']);
    });

    it('gives a slot again that was released, or whose time has passed', async () => {
      const { store } = current();
      await store.takeSlot(slot('a', { untilMs: 2000 }));
      await store.takeSlot(slot('b'));
      expect(await store.takeSlot(slot('c', { nowMs: 1999 }))).toBe(false);
      expect(await store.takeSlot(slot('c', { nowMs: 2000 }))).toBe(true);
      await store.releaseSlot(slot('').policy, 'b');
      await store.releaseSlot(slot('').policy, 'nobody');
      expect(await store.takeSlot(slot('d'))).toBe(true);
      expect(await store.slotsInUse(slot('').policy, 2000)).toEqual(['c', 'd']);
    });

    it('behaves as a plain map with ends, whatever is asked in whatever order', async () => {
      const computeId = fc.constantFrom('a', 'b', 'c', 'd');
      const step = fc.oneof(
        fc.record({
          kind: fc.constant('take' as const),
          computeId,
          allowed: fc.nat(3),
          forMs: fc.integer({ min: 1, max: 9 }),
        }),
        fc.record({ kind: fc.constant('release' as const), computeId }),
        fc.record({ kind: fc.constant('wait' as const), forMs: fc.nat(5) }),
      );
      let run = 0;
      await fc.assert(
        fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
          run += 1;
          await followModel(current().store, `property-${run}`, steps);
        }),
        { numRuns: 25 },
      );
    });
  });
}

type Step =
  | { kind: 'take'; computeId: string; allowed: number; forMs: number }
  | { kind: 'release'; computeId: string }
  | { kind: 'wait'; forMs: number };

async function followModel(store: Store, policy: string, steps: readonly Step[]): Promise<void> {
  const ends = new Map<string, number>();
  let nowMs = 1000;
  const inUse = () => [...ends].filter(([, untilMs]) => untilMs > nowMs).map(([id]) => id);
  for (const step of steps) {
    if (step.kind === 'wait') nowMs += step.forMs;
    if (step.kind === 'release') {
      await store.releaseSlot(policy, step.computeId);
      ends.delete(step.computeId);
    }
    if (step.kind === 'take') {
      const { computeId, allowed } = step;
      const expected = inUse().includes(computeId) || inUse().length < allowed;
      const untilMs = nowMs + step.forMs;
      expect(await store.takeSlot({ policy, computeId, allowed, nowMs, untilMs })).toBe(expected);
      if (expected) ends.set(computeId, untilMs);
    }
    expect(await store.slotsInUse(policy, nowMs)).toEqual(inUse().sort());
  }
}
