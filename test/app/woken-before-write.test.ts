import { expect, it, onTestFinished } from 'vitest';
import { startSimulatedDaemon } from '../support/simulated/daemon.ts';

const MINUTE_MS = 60_000;
const EIGHT = Date.parse('2026-03-02T08:00:00Z');
const POLICIES = `version: 1
policies:
  - name: less
    kind: schedule
    select: { projects: ["*"], min_age: 1m }
    windows: [{ at: Mon-Fri 08:00-18:00 UTC, size: 0.25 }]
    otherwise: leave
`;

it.each([
  ['has woken up', 4_000],
  ['begins to wake up', 1_000],
])(
  'a compute that %s between the reading for a boundary and the change is read once more, and not lowered',
  async (_, beforeMs) => {
    const size = { minCu: 1, maxCu: 2 };
    const daemon = await startSimulatedDaemon({
      ...{ fromMs: EIGHT - 10 * MINUTE_MS, policies: POLICIES, computes: { wakes: size, sleeps: size } },
    });
    onTestFinished(() => daemon.close());
    const { clock, platform, events } = daemon;
    await clock.runTo(EIGHT - beforeMs);
    await platform.control('computes/ep-wakes/connect', { connections: 2 });
    await clock.runTo(EIGHT + 45 * MINUTE_MS);
    expect((await platform.writes()).map(({ path }) => path.split('/').at(-1))).toEqual(['ep-sleeps']);
    const waiting = events.flatMap(({ event }) =>
      event.kind === 'held_back' && event.compute.computeId === 'ep-wakes'
        ? event.plan.waiting.map(({ gate }) => gate.code)
        : [],
    );
    expect(waiting.at(-1)).toBe('waiting_for_idle');
  },
);
