import { expect, it, onTestFinished } from 'vitest';
import { startSimulatedDaemon } from '../support/simulated/daemon.ts';
import { EIGHT, POLICIES, startShop } from './shop-at-eight.ts';

const MINUTE_MS = 60_000;

it('a daemon writes nothing while its machine is set apart from the store, and goes on once that is corrected', async () => {
  const machine = { aheadMs: 10_000 };
  const daemon = await startShop({
    machineMs: () => Date.now() + machine.aheadMs,
  });
  const { clock, platform } = daemon;
  await clock.runTo(EIGHT + 5 * MINUTE_MS);
  expect(await platform.writes()).toEqual([]);
  machine.aheadMs = 0;
  // It takes its queues again with the next comparison of the clocks, which comes every two hours here.
  await clock.runTo(EIGHT + 130 * MINUTE_MS);
  expect(await platform.writes()).toHaveLength(1);
});

/** What is wanted from 8:00 is stored then, and written when the freeze ends. */
const FROZEN = `${POLICIES}
  - name: frozen
    kind: freeze
    select: { projects: ["*"], min_age: 1m }
    at: 2026-03-02T07:00:00Z/2026-03-02T09:00:00Z
`;

it('a machine whose clock is set while it reconciles a project stores nothing by that time', async () => {
  const machine = { aheadMs: 0, isToBeSet: false };
  const stored: number[] = [];
  const daemon = await startSimulatedDaemon({
    ...{ fromMs: EIGHT - 10 * MINUTE_MS, policies: FROZEN, computes: { shop: { minCu: 0.25, maxCu: 1 } } },
    machineMs: () => Date.now() + machine.aheadMs,
    withStore: (store) => ({
      ...store,
      async acquireLease(...args) {
        if (machine.isToBeSet && args[0].startsWith('project-')) machine.aheadMs = 90_000;
        return store.acquireLease(...args);
      },
      async putRecord(...args) {
        stored.push(machine.aheadMs);
        return store.putRecord(...args);
      },
    }),
  });
  onTestFinished(() => daemon.close());
  const { clock, platform } = daemon;
  await clock.runTo(EIGHT - 5 * MINUTE_MS);
  machine.isToBeSet = true;
  await clock.runTo(EIGHT + 5 * MINUTE_MS);
  expect(machine.aheadMs).toBe(90_000);
  expect(stored).not.toContain(90_000);
  Object.assign(machine, { aheadMs: 0, isToBeSet: false });
  await clock.runTo(EIGHT + 130 * MINUTE_MS);
  expect(await platform.writes()).toHaveLength(1);
});
