import { expect, it, onTestFinished } from 'vitest';
import { logEvents } from '../../src/app/telemetry/log-events.ts';
import { memoryLog } from '../support/memory-log.ts';
import { startSimulatedDaemon } from '../support/simulated/daemon.ts';

const MONDAY = Date.parse('2026-03-02T00:00:00Z');
const POLICIES = `version: 1
policies:
  - name: office-hours
    kind: schedule
    select: { projects: ["*"], min_age: 1m }
    disruption: { lower: { when: any }, newly_discovered: act }
    windows: [{ at: Mon-Fri 08:00-18:00 UTC, size: 1-2 }]
    otherwise: { size: 0.25 }
`;

it('a change of a compute with clients, with all its operations, has one line at level info, which says why', async () => {
  const computes = { shop: { state: 'active', minCu: 0.25, maxCu: 0.25, connections: 2 } } as const;
  const daemon = await startSimulatedDaemon({ ...{ fromMs: MONDAY, policies: POLICIES, computes } });
  onTestFinished(() => daemon.close());
  await daemon.clock.runTo(MONDAY + 9 * 3_600_000);

  const log = memoryLog();
  const metrics = { increment() {}, set() {}, clear() {}, observe() {} };
  for (const { event } of daemon.events) logEvents({ log, metrics })(event);
  const lines = log.lines.filter(({ level }) => level !== 'debug').map(({ message }) => message);
  expect(lines).toEqual([
    expect.stringMatching(/^changed ep-shop of shop: size 0.25 → 1-2 CU: window 1 of office-hours,/),
  ]);
  expect(log.lines.length).toBeGreaterThan(2);
});
