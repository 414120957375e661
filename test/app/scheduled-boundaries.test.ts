import { expect, it } from 'vitest';
import { type ScheduleDeps, scheduleBoundaries } from '../../src/app/triggers.ts';

const NOW_MS = Date.parse('2026-11-23T08:00:00Z');
const NEXT_MS = NOW_MS + 3_600_000;

function aDaemon() {
  const added: string[] = [];
  const engine = { isUnavailable: false };
  const queue = {
    async addAt(_: string, { id }: { id: string }) {
      if (engine.isUnavailable) throw new Error('Redis is away');
      added.push(id);
    },
  };
  const deps = { queue, clock: { now: () => NOW_MS }, scheduledBoundaries: new Set() } as unknown as ScheduleDeps;
  return { added, engine, schedule: () => scheduleBoundaries(deps, [{ nextBoundaryMs: NEXT_MS }]) };
}

it('projects that come to know a boundary in the same moment put it into the queue once', async () => {
  const { added, schedule } = aDaemon();
  await Promise.all([schedule(), schedule(), schedule()]);
  await schedule();
  expect(added).toEqual([`b-${NEXT_MS}`]);
});

it('a boundary that could not be put into the queue is put there the next time', async () => {
  const { added, engine, schedule } = aDaemon();
  engine.isUnavailable = true;
  await expect(schedule()).rejects.toThrow('Redis is away');
  engine.isUnavailable = false;
  await schedule();
  expect(added).toEqual([`b-${NEXT_MS}`]);
});
