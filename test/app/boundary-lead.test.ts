import { expect, it } from 'vitest';
import { type BoundaryDeps, createBoundaries } from '../../src/app/boundaries/boundaries.ts';
import { createFleet } from '../../src/app/fleet/fleet.ts';
import { evaluate } from '../../src/domain/evaluate/evaluate.ts';
import { withReadyWaves } from '../../src/domain/policy/compiled-policies.ts';
import type { Policy } from '../../src/domain/policy/policy.ts';
import { aCompute, aRecord, aSchedule, aWindow, currentRules } from '../support/builders.ts';
import { aSelector } from '../support/selectors.ts';

const NOW = Date.parse('2026-11-23T07:50:00Z');
const EIGHT = Date.parse('2026-11-23T08:00:00Z');
const NEVER = new AbortController().signal;

/** A daemon with so many computes that all change at eight, and the triggers that it sends. */
function aDaemon(computes: number, accountOf = (_index: number) => 'default', policies: Policy[] = [aSchedule()]) {
  const time = { ms: NOW };
  const clock = { now: () => time.ms, monotonicMs: () => time.ms, realDelayMs: (ms: number) => ms - time.ms };
  const fleet = createFleet({ clock } as never);
  const rules = currentRules(...policies);
  for (let index = 0; index < computes; index += 1) {
    const projectId = `p-${index}`;
    const account = accountOf(index);
    const compute = aCompute({ account, projectId, projectName: projectId, computeId: `ep-${index}`, state: 'idle' });
    const record = aRecord();
    fleet.list({ account, projectId, name: projectId, regionId: 'r', updatedAtMs: 0 });
    const situation = { policies: rules.current.policies, compute, record, nowMs: NOW, mode: 'enforce' as const };
    fleet.putEvaluated({ compute, record, ...evaluate({ ...situation, projectBusy: false, disruption: {} } as never) });
  }
  const sent: string[] = [];
  const leader = { isHeld: true };
  const deps = {
    leaderLease: { isHeld: () => leader.isHeld },
    ...{ clock, fleet, rules, overrides: { holds: [], freezes: [] }, mode: 'enforce' },
    store: { projectIds: async () => [] },
    queue: {
      add: async (queue: string, { key }: { key: string }) => sent.push(`${queue} ${key}`),
      addAt: async (queue: string, { id }: { id: string }) => sent.push(`${queue} ${id}`),
    },
  } as unknown as BoundaryDeps;
  const handle = createBoundaries(deps);
  const cross = (instantMs = EIGHT) => handle({ queue: 'boundaries', id: 'b', data: { instantMs } }, NEVER);
  return { time, fleet, sent, cross, rules, leader };
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

it('many are triggered 5 s before it where the list cannot be relied on', async () => {
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

it('what was sent early for a boundary that another daemon has ended is forgotten a minute after it', async () => {
  const { time, fleet, sent, cross } = aDaemon(200);
  fleet.listShowsChanges.set('default', true);
  time.ms = EIGHT - 110_000;
  await cross();
  expect(sent).toHaveLength(200);
  time.ms = EIGHT + 61_000;
  await cross(time.ms);
  expect(sent).toHaveLength(200);
  await cross();
  expect(sent).toHaveLength(400);
});

it('other daemons leave the triggers to the leader, who knows all computes, until 2 s before the instant', async () => {
  const { time, fleet, sent, cross, leader } = aDaemon(200);
  fleet.listShowsChanges.set('default', true);
  leader.isHeld = false;
  for (const leftMs of [110_000, 5_000, 2_001]) {
    time.ms = EIGHT - leftMs;
    expect(await cross()).toEqual({ kind: 'again', atMs: time.ms + 250 });
  }
  expect(sent).toEqual([]);
  time.ms = EIGHT - 2_000;
  expect(await cross()).toEqual({ kind: 'done' });
  expect(sent).toHaveLength(200);
});

it('each account has its own limit: how early projects are triggered depends on the largest of them, not on the sum', async () => {
  const { time, fleet, sent, cross } = aDaemon(200, (index) => `account ${index % 4}`);
  for (const index of [0, 1, 2, 3]) fleet.listShowsChanges.set(`account ${index}`, true);
  time.ms = EIGHT - 90_000;
  await cross();
  expect(sent).toEqual([]);
});

it('the waves of a herd are triggered so early that all of it is read before the first of them', async () => {
  const policy = aSchedule({ windows: [{ at: [aWindow()], size: { minCu: 2, maxCu: 2 } }] });
  const windows = [{ at: [aWindow({ startMinute: 479 })], size: { minCu: 2, maxCu: 2 } }];
  const early = aSchedule({ name: 'early', priority: 1, select: aSelector({ projects: ['p-1??'] }), windows });
  const { time, fleet, sent, cross, rules } = aDaemon(200, () => 'default', [policy, early]);
  fleet.listShowsChanges.set('default', true);
  const triggeredAt = async (ms: number) => {
    time.ms = ms;
    await cross();
    return sent.length > 0;
  };
  expect(await triggeredAt(EIGHT - 6_000)).toBe(false);
  const last = { priority: 0, part: 1 };
  const waves = [60_000, 0].map((leadMs) => ({ leadMs, computes: 100, last }));
  const herd = { account: 'default', opensAtMs: EIGHT, setHash: '', waves };
  rules.current = { ...rules.current, policies: withReadyWaves(rules.current.policies, [herd]) };
  expect(await triggeredAt(EIGHT - 171_000)).toBe(false);
  expect(await triggeredAt(EIGHT - 170_000)).toBe(true);
});

it('who was raised in a wave is not triggered when the windows open, unless it is not as it should be or the list can’t be relied on', async () => {
  const size = { minCu: 2, maxCu: 2 };
  const windows = [{ at: [aWindow()], size, readyLeadMs: 180_000, readyInWaves: true as const }];
  const otherwise = 'leave' as const;
  const { time, fleet, sent, cross, rules } = aDaemon(3, () => 'default', [aSchedule({ windows, otherwise })]);
  const { policies } = rules.current;
  const herd = { account: 'default', opensAtMs: EIGHT, setHash: policies.set.hash, waves: [] };
  rules.current = { ...rules.current, policies: withReadyWaves(policies, [herd]) };
  for (const evaluated of [...fleet.evaluatedComputes()].slice(1))
    fleet.putEvaluated({ ...evaluated, compute: { ...evaluated.compute, ...size } });
  time.ms = EIGHT - 5_000;
  await cross();
  expect(sent).toHaveLength(3);
  sent.length = 0;
  fleet.listShowsChanges.set('default', true);
  await cross();
  expect(sent).toEqual([`crossings c-p-0-${EIGHT}`]);
});
