import { expect, it, onTestFinished } from 'vitest';
import { startSimulatedDaemon } from '../support/simulated/daemon.ts';

const MINUTE_MS = 60_000;
const EIGHT = Date.parse('2026-03-02T08:00:00Z');
const POLICIES = `version: 1
policies:
  - name: more
    kind: schedule
    select: { projects: ["*"], min_age: 1m }
    windows: [{ at: Mon-Fri 08:00-18:00 UTC, size: 2-4 }]
    otherwise: leave
`;

it('a compute that is listed twice is not written to, before it is listed once again', async () => {
  const daemon = await startSimulatedDaemon({
    ...{ fromMs: EIGHT - 10 * MINUTE_MS, policies: POLICIES, computes: { shop: { minCu: 0.25, maxCu: 1 } } },
  });
  onTestFinished(() => daemon.close());
  const { clock, platform } = daemon;
  await clock.runTo(EIGHT - 5 * MINUTE_MS);
  await platform.control('faults', { kind: 'duplicates', route: 'GET /projects/{project_id}/endpoints' });
  for (let minutes = -4; minutes <= 10; minutes += 1) {
    await daemon.reconcile('shop');
    await clock.runTo(EIGHT + minutes * MINUTE_MS);
  }
  expect(await platform.writes()).toEqual([]);
  await platform.clearFaults();
  await daemon.reconcile('shop');
  await clock.runTo(EIGHT + 12 * MINUTE_MS);
  expect(await platform.writes()).toHaveLength(1);
});
