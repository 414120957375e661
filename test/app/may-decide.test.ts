import { expect, it } from 'vitest';
import { type MayDecideDeps, mayDecide } from '../../src/app/reconcile/missing.ts';

const NOW_MS = 1_000_000;

/** What is decided with so much left of the wait after a loss of the store, and a clock that is off by so much; and when it is tried again. */
async function decided(waitMs: number, offsetMs?: number) {
  const again: unknown[] = [];
  const deps = {
    clock: { now: () => NOW_MS },
    storeClock: { excessiveOffsetMs: async () => offsetMs },
    storeWatch: { waitMs: () => waitMs },
    queue: {
      add: async (_: string, { atMs }: { atMs?: number }) =>
        void again.push(atMs === undefined ? 'soon' : atMs - NOW_MS),
    },
  } as unknown as MayDecideDeps;
  return { may: await mayDecide(deps, 'p-one'), again };
}

it('a project is decided unless the clock is off, or other daemons may still write back what a store has lost', async () => {
  expect(await decided(0)).toEqual({ may: true, again: [] });
  expect(await decided(0, 3_000)).toEqual({ may: false, again: ['soon'] });
  expect(await decided(9_000)).toEqual({ may: false, again: [9_000] });
});
