import { expect, it, onTestFinished } from 'vitest';
import { logEvents } from '../../src/app/telemetry/log-events.ts';
import { compilePolicies } from '../../src/domain/policy/compiled-policies.ts';
import type { Telemetry } from '../../src/ports/telemetry.ts';
import { memoryLog } from '../support/memory-log.ts';
import { startSimulatedDaemon } from '../support/simulated/daemon.ts';

const HOUR_MS = 3_600_000;
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

it.each([
  ['an edited policy makes', {}, 'other'],
  ['a set makes that a person has approved', { approver: { who: 'ana' } }, 'person'],
])('restarts at boundaries are counted apart from those that %s', async (_what, approver, cause) => {
  const computes = {
    shop: { state: 'active', minCu: 0.25, maxCu: 0.25, connections: 2, suspendTimeoutSeconds: -1 },
  } as const;
  const daemon = await startSimulatedDaemon({ ...{ fromMs: MONDAY, policies: POLICIES, computes } });
  onTestFinished(() => daemon.close());
  await daemon.clock.runTo(MONDAY + 21.5 * HOUR_MS);
  const { current } = daemon.rules;
  const { set } = current.policies;
  const [policy] = set.policies;
  if (policy?.kind !== 'schedule') throw new Error('another policy');
  const edited = { ...policy, otherwise: { size: { minCu: 0.5, maxCu: 0.5 } } };
  const policies = compilePolicies({ ...set, hash: 'edited', policies: [edited] });
  const becameCurrent = [{ hash: 'edited', currentSinceMs: daemon.clock.now(), ...approver }];
  daemon.rules.current = { ...current, policies, becameCurrent };
  await daemon.clock.runTo(MONDAY + 22 * HOUR_MS);

  const counted: Record<string, number> = {};
  const metrics = {
    increment: (name: string, { cause = '' }: { cause?: string }) => {
      if (name === 'ebb_restarts_total') counted[cause] = (counted[cause] ?? 0) + 1;
    },
    observe: () => {},
  };
  const report = logEvents({ log: memoryLog(), metrics } as unknown as Telemetry);
  for (const { event } of daemon.events) report(event);
  expect(counted).toEqual({ boundary: 2, [cause]: 1 });
});

it.each(['stays', 'restarts'] as const)(
  'a change has no reason and no cause of a restart that is due beside it (%s)',
  async (timeoutChange) => {
    const of = 'select: { projects: ["*"], min_age: 1m }, disruption: { lower: { when: any }, newly_discovered: act }';
    const policies = `version: 1
policies:
  - { name: sleep, kind: schedule, ${of}, windows: [{ at: always, suspend_after: 10m }], otherwise: leave }
  - { name: updates, kind: restart, ${of}, at: Mon 03:00-05:00 UTC }
`;
    const computes = { shop: { state: 'active', connections: 2, suspendTimeoutSeconds: 300 } } as const;
    const platform = { behaviours: { timeoutChange } };
    const daemon = await startSimulatedDaemon({ fromMs: MONDAY + 3.5 * HOUR_MS, policies, computes, platform });
    onTestFinished(() => daemon.close());
    await daemon.clock.runTo(MONDAY + 4 * HOUR_MS);
    const changes = daemon.events.flatMap(({ event }) =>
      event.kind === 'write_ended'
        ? [[event.action.kind, event.reasons.map(({ code }) => code), event.restartCause]]
        : [],
    );
    // A restart by a new timeout makes the planned one needless.
    const made =
      timeoutChange === 'restarts'
        ? [['update', ['window_open'], 'other']]
        : [
            ['update', ['window_open'], undefined],
            ['restart', ['restart_due'], 'boundary'],
          ];
    expect(changes).toEqual(made);
  },
);

it('a change of a compute with clients, with all its operations, has one line at level info, which says why', async () => {
  const computes = { shop: { state: 'active', minCu: 0.25, maxCu: 0.25, connections: 2 } } as const;
  const daemon = await startSimulatedDaemon({ ...{ fromMs: MONDAY, policies: POLICIES, computes } });
  onTestFinished(() => daemon.close());
  await daemon.clock.runTo(MONDAY + 9 * HOUR_MS);

  const log = memoryLog();
  const metrics = { increment() {}, set() {}, clear() {}, observe() {} };
  for (const { event } of daemon.events) logEvents({ log, metrics })(event);
  const lines = log.lines.filter(({ level }) => level !== 'debug').map(({ message }) => message);
  expect(lines).toEqual([
    expect.stringMatching(/^changed ep-shop of shop: size 0.25 → 1-2 CU: window 1 of office-hours,/),
  ]);
  expect(log.lines.length).toBeGreaterThan(2);
});
