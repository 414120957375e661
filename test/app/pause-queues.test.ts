import { expect, it } from 'vitest';
import { pauseQueues } from '../../src/app/group/pause-queues.ts';
import type { QueueName } from '../../src/ports/job-queue.ts';

/** A leader with one project, whose queue takes no jobs while it is away. */
function aLeader() {
  const state = { isAway: false, blocked: undefined as 'superseded' | undefined };
  const paused = new Set<QueueName>();
  const added: string[] = [];
  const queue = {
    pause: async (name: QueueName) => void paused.add(name),
    resume: async (name: QueueName) => void paused.delete(name),
    add: async (name: QueueName) => {
      if (state.isAway) throw new Error('the queue is away');
      added.push(name);
    },
  };
  let changed: Promise<void> = Promise.resolve();
  const runInBackground = (_task: string, round: () => Promise<void>) => {
    changed = round().catch(() => {});
    return changed;
  };
  const deps = { queue, runInBackground, fleet: { projectIds: () => ['p'] }, leaderLease: { isHeld: () => true } };
  const update = pauseQueues({ ...deps, blocked: () => state.blocked } as unknown as Parameters<typeof pauseQueues>[0]);
  const become = async (change: Partial<typeof state>) => {
    Object.assign(state, change);
    update();
    await changed;
    await Promise.resolve();
  };
  return { paused, added, become };
}

it('queues are paused again after a change that failed half-way', async () => {
  const { paused, added, become } = aLeader();
  await become({ blocked: 'superseded' });
  expect([...paused]).toEqual(['reconcile', 'boundaries', 'crossings']);
  await become({ blocked: undefined, isAway: true });
  expect([...paused]).toEqual([]);
  await become({ blocked: 'superseded', isAway: false });
  expect([...paused]).toEqual(['reconcile', 'boundaries', 'crossings']);
  await become({ blocked: undefined });
  expect([[...paused], added]).toEqual([[], ['reconcile']]);
});
