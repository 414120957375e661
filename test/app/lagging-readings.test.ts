import { expect, it, onTestFinished } from 'vitest';
import { startSimulatedDaemon } from '../support/simulated/daemon.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const EIGHT = Date.parse('2026-03-02T08:00:00Z');
const POLICIES = `version: 1
policies:
  - name: more
    kind: schedule
    select: { projects: ["*"], min_age: 1m }
    windows: [{ at: Mon-Fri 08:00-18:00 UTC, size: 2-4 }]
    otherwise: leave
`;

it('a reading that still shows the old values after a change is nobody else, and nothing is sent again', async () => {
  const daemon = await startSimulatedDaemon({
    ...{ fromMs: EIGHT - 10 * MINUTE_MS, policies: POLICIES, computes: { shop: { minCu: 0.25, maxCu: 1 } } },
  });
  onTestFinished(() => daemon.close());
  const { clock, platform, events } = daemon;
  await platform.control('faults', { kind: 'stale_reads', ms: 5 * SECOND_MS });
  await clock.runTo(EIGHT + SECOND_MS);
  expect(await platform.writes()).toHaveLength(1);
  for (let seconds = 2; seconds <= 120; seconds += 2) {
    await daemon.reconcile('shop');
    await clock.runTo(EIGHT + seconds * SECOND_MS);
  }
  expect(await platform.writes()).toHaveLength(1);
  expect(events.filter(({ event }) => event.kind === 'manual_change')).toEqual([]);
  const record = await daemon.record('shop', 'ep-shop');
  expect(record?.baseline).toMatchObject({ minCu: 0.25, maxCu: 1 });
  expect(record).not.toHaveProperty('lagging');
});
