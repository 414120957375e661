import { expect, it } from 'vitest';
import { type BoundaryDeps, createBoundaries } from '../../src/app/boundaries/boundaries.ts';
import { createFleet } from '../../src/app/fleet/fleet.ts';
import { evaluate } from '../../src/domain/evaluate/evaluate.ts';
import { aCompute, aRecord, aSchedule, currentRules } from '../support/builders.ts';

const NOW = Date.parse('2026-11-23T07:50:00Z');
const EIGHT = Date.parse('2026-11-23T08:00:00Z');
const NEVER = new AbortController().signal;

/** A daemon with so many computes that all change at eight, and the triggers that it sends. */
function aDaemon(computes: number, accountOf = (_index: number) => 'default') {
  const time = { ms: NOW };
  const clock = { now: () => time.ms, monotonicMs: () => time.ms, realDelayMs: (ms: number) => ms - time.ms };
  const fleet = createFleet({ clock } as never);
  const rules = currentRules(aSchedule());
  for (let index = 0; index < computes; index += 1) {
    const projectId = `p-${index}`;
    const account = accountOf(index);
    const compute = aCompute({ account, projectId, computeId: `ep-${index}`, state: 'idle' });
    const record = aRecord();
    fleet.list({ account, projectId, name: projectId, regionId: 'r', updatedAtMs: 0 });
    const situation = { policies: rules.current.policies, compute, record, nowMs: NOW, mode: 'enforce' as const };
    fleet.putEvaluated({ compute, record, ...evaluate({ ...situation, projectBusy: false, disruption: {} } as never) });
  }
  const sent: string[] = [];
  const deps = {
    ...{ clock, fleet, rules, overrides: { holds: [], freezes: [] }, mode: 'enforce' },
    store: { projectIds: async () => [] },
    queue: {
      addAt: async (queue: string, { id }: { id: string }) => sent.push(`${queue} ${id}`),
    },
  } as unknown as BoundaryDeps;
  const handle = createBoundaries(deps);
  const cross = () => handle({ queue: 'boundaries', id: 'b', data: { instantMs: EIGHT } }, NEVER);
  return { time, fleet, sent, cross };
}

it('few projects are triggered 5 s before a boundary', async () => {
  const { time, fleet, sent, cross } = aDaemon(3);
  fleet.listShowsChanges.set('default', true);
  time.ms = EIGHT - 6_000;
  expect(await cross()).toEqual({ kind: 'again', atMs: EIGHT - 5_000 });
  expect(sent).toEqual([]);
  time.ms = EIGHT - 5_000;
  expect(await cross()).toEqual({ kind: 'done' });
  expect(sent).toEqual([0, 1, 2].map((index) => `crossings c-p-${index}-${EIGHT}`));
});

it('many are triggered early, once each, where the project list shows changes', async () => {
  const { time, fleet, sent, cross } = aDaemon(200);
  expect(await cross()).toEqual({ kind: 'again', atMs: NOW + 5_000 });
  fleet.listShowsChanges.set('default', true);
  time.ms = EIGHT - 110_000;
  expect(await cross()).toEqual({ kind: 'again', atMs: EIGHT - 5_000 });
  expect(sent).toHaveLength(200);
  time.ms = EIGHT - 5_000;
  expect(await cross()).toEqual({ kind: 'done' });
  expect(sent).toHaveLength(200);
});

it('many are triggered 5 s before it where the list can not be relied on', async () => {
  const { time, fleet, sent, cross } = aDaemon(200);
  fleet.listShowsChanges.set('default', false);
  time.ms = EIGHT - 110_000;
  expect(await cross()).toEqual({ kind: 'again', atMs: time.ms + 5_000 });
  expect(sent).toEqual([]);
});

it('a daemon that takes the job of the boundary over asks for the same jobs, so that each project is reconciled once', async () => {
  const [first, second] = [aDaemon(200), aDaemon(200)];
  first.fleet.listShowsChanges.set('default', true);
  first.time.ms = EIGHT - 110_000;
  second.time.ms = EIGHT - 5_000;
  await first.cross();
  expect(await second.cross()).toEqual({ kind: 'done' });
  expect(second.sent.toSorted()).toEqual(first.sent.toSorted());
});

it('each account has its own limit: how early projects are triggered depends on the largest of them, not on the sum', async () => {
  const { time, fleet, sent, cross } = aDaemon(200, (index) => `account ${index % 4}`);
  for (const index of [0, 1, 2, 3]) fleet.listShowsChanges.set(`account ${index}`, true);
  time.ms = EIGHT - 90_000;
  await cross();
  expect(sent).toEqual([]);
});
