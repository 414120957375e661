import { expect, it, onTestFinished } from 'vitest';
import { startSimulatedDaemon } from '../support/simulated/daemon.ts';

const MINUTE_MS = 60_000;
const EIGHT = Date.parse('2026-03-02T08:00:00Z');
const POLICIES = `version: 1
policies:
  - name: both
    kind: schedule
    select: { projects: ["*"], min_age: 1m }
    windows: [{ at: Mon-Fri 08:00-18:00 UTC, size: 0.25, suspend_after: 10m }]
    otherwise: leave
`;
const PATCH = 'PATCH /projects/{project_id}/endpoints/{endpoint_id}';

it('size and timeout that were refused together are sent one after the other at once, though no operation ends', async () => {
  const daemon = await startSimulatedDaemon({
    ...{ fromMs: EIGHT - 10 * MINUTE_MS, policies: POLICIES, computes: { sleeps: { minCu: 1, maxCu: 2 } } },
  });
  onTestFinished(() => daemon.close());
  const { clock, platform } = daemon;
  await platform.control('faults', { kind: 'status', status: 400, route: PATCH, count: 1 });
  await clock.runTo(EIGHT + MINUTE_MS);
  const [size, timeout] = [
    { autoscaling_limit_min_cu: 0.25, autoscaling_limit_max_cu: 0.25 },
    { suspend_timeout_seconds: 600 },
  ];
  const writes = (await platform.writes()).map(({ body }) => body);
  expect(writes).toEqual([{ ...size, ...timeout }, size, timeout].map((endpoint) => ({ endpoint })));
});
