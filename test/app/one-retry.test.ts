import { expect, it, onTestFinished } from 'vitest';
import { startSimulatedDaemon } from '../support/simulated/daemon.ts';

const SECOND_MS = 1_000;
const EIGHT = Date.parse('2026-03-02T08:00:00Z');
const POLICIES = `version: 1
policies:
  - name: more
    kind: schedule
    select: { projects: ["*"], min_age: 1m }
    windows: [{ at: Mon-Fri 08:00-18:00 UTC, size: 2-4 }]
    otherwise: leave
`;

it('a change that is refused because of an operation is tried every 5 s, however many triggers there were', async () => {
  const daemon = await startSimulatedDaemon({
    ...{ fromMs: EIGHT - 600 * SECOND_MS, policies: POLICIES, computes: { shop: { minCu: 0.25, maxCu: 1 } } },
  });
  onTestFinished(() => daemon.close());
  const { clock, platform } = daemon;
  await clock.runTo(EIGHT - 10 * SECOND_MS);
  await platform.control('faults', { kind: 'status', status: 423, method: 'PATCH' });
  for (let seconds = 1; seconds <= 4; seconds += 1) {
    await clock.runTo(EIGHT + seconds * SECOND_MS);
    await daemon.reconcile('shop');
  }
  await clock.runTo(EIGHT + 5 * SECOND_MS);
  const before = (await platform.writes()).length;
  await clock.runTo(EIGHT + 65 * SECOND_MS);
  expect((await platform.writes()).length - before).toBe(12);
  await platform.clearFaults();
  await clock.runTo(EIGHT + 71 * SECOND_MS);
  expect((await platform.writes()).at(-1)?.status).toBe(200);
});
