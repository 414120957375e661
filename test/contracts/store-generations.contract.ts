import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createStore } from '../../src/adapters/store/create-store.ts';
import type { Store } from '../../src/ports/store.ts';
import type { TestEngine } from '../support/engines.ts';
import { oldGenerations } from './old-generations.ts';

const A = { setHash: 'set-a', decisionHash: 'set-a by some settings', decisionVersion: 1 };
const B = { setHash: 'set-b', decisionHash: 'set-b by some settings', decisionVersion: 1 };

export function describeGenerations(current: () => { store: Store; on: TestEngine }): void {
  describe('generations', () => {
    it('grows with each other set and stays for the same one, over all daemons', async () => {
      const { store, on } = current();
      const other = await createStore(on);
      expect(await store.generation()).toBeUndefined();
      const first = await store.raiseGeneration(A);
      expect(await other.raiseGeneration(A)).toEqual(first);
      const second = await other.raiseGeneration(B);
      expect(second.number).toBeGreaterThan(first.number);
      expect(await store.generation()).toEqual({ number: second.number, ...B });
      const third = await store.raiseGeneration(A);
      expect(third.number).toBeGreaterThan(second.number);
      expect(await other.generation()).toEqual({ number: third.number, ...A });
    });

    it('grows where the same policies decide otherwise, by other settings or another engine', async () => {
      const { store } = current();
      const first = await store.raiseGeneration(A);
      const second = await store.raiseGeneration({ ...A, decisionHash: 'a by other settings' });
      expect(second.number).toBeGreaterThan(first.number);
      const newer = { ...A, decisionHash: 'a by a newer engine', decisionVersion: 2 };
      const third = await store.raiseGeneration(newer);
      expect(third).toEqual({ number: expect.any(Number), ...newer });
      expect(third.number).toBeGreaterThan(second.number);
    });

    it('leaves that of a newer engine current, unless it is to be replaced by its number', async () => {
      const { store } = current();
      const newer = await store.raiseGeneration({ ...A, decisionVersion: 2 });
      expect(await store.raiseGeneration(B)).toEqual(newer);
      expect(await store.raiseGeneration(B, newer.number - 1)).toEqual(newer);
      const taken = await store.raiseGeneration(B, newer.number);
      expect(taken).toEqual({ number: expect.any(Number), ...B });
      expect(taken.number).toBeGreaterThan(newer.number);
    });

    it('is replaced by one of many that want to replace the same number', async () => {
      const { store } = current();
      const { number } = await store.raiseGeneration(A);
      const others = ['b', 'c', 'd', 'e'].map((setHash) => ({ setHash, decisionHash: setHash, decisionVersion: 1 }));
      const raised = await Promise.all(others.map((own) => store.raiseGeneration(own, number)));
      expect(new Set(raised.map((generation) => generation.setHash)).size).toBe(1);
    });

    it('gives one number to many that load the same set at once', async () => {
      const { store } = current();
      const raised = await Promise.all(Array.from({ length: 6 }, () => store.raiseGeneration(A)));
      expect(new Set(raised.map(({ number }) => number)).size).toBe(1);
    });

    it('keeps the latest set current over a store that came back empty, whichever daemon writes first', async () => {
      const { store, on } = current();
      const older = await store.raiseGeneration(A);
      const newer = await store.raiseGeneration(B);
      for (const told of [
        [older, newer],
        [newer, older],
      ]) {
        await on.reset();
        for (const known of told) await store.restoreGeneration(known);
        expect(await store.generation()).toEqual(newer);
        expect(await store.restoreGeneration(older)).toEqual(newer);
      }
      await on.reset();
      // Numbers are instants: an empty store can only give a later one once the clock has gone on.
      await expect.poll(() => Date.now(), { interval: 1 }).toBeGreaterThan(newer.number);
      expect((await store.raiseGeneration({ ...A, setHash: 'set-c' })).number).toBeGreaterThan(newer.number);
    });
  });

  describe('generations that a daemon of 0.1.0 shares', () => {
    it('are read by it, and it keeps to the number of its own policies whatever else decides', async () => {
      const { store, on } = current();
      const old = oldGenerations(on.engine);
      const before = await old.raise(A.setHash);
      expect(await store.generation()).toEqual({ number: before, setHash: A.setHash });
      const { number } = await store.raiseGeneration(A);
      expect(number).toBeGreaterThan(before);
      expect(await old.read()).toMatchObject({ number, setHash: A.setHash });
      expect(await old.raise(A.setHash)).toBe(number);
      expect(await store.generation()).toEqual({ number, ...A });
    });

    it('say nothing of settings and engine once it has registered other policies', async () => {
      const { store, on } = current();
      await store.raiseGeneration({ ...A, decisionVersion: 2 });
      const number = await oldGenerations(on.engine).raise(B.setHash);
      expect(await store.generation()).toEqual({ number, setHash: B.setHash });
      expect((await store.raiseGeneration(A)).number).toBeGreaterThan(number);
    });

    it('say what decides again once it has put its part back into an empty store', async () => {
      const { store, on } = current();
      const known = await store.raiseGeneration(A);
      await on.reset();
      await oldGenerations(on.engine).restore(known);
      expect(await store.restoreGeneration(known)).toEqual(known);
      expect(await store.generation()).toEqual(known);
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
