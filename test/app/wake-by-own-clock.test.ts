import { expect, it } from 'vitest';
import { type BoundaryDeps, createBoundaries } from '../../src/app/boundaries/boundaries.ts';
import { createFleet } from '../../src/app/fleet/fleet.ts';
import { createReconcile, type ReconcileDeps } from '../../src/app/reconcile/reconcile.ts';
import type { JobData } from '../../src/ports/job-queue.ts';
import { MAY_DECIDE } from '../support/builders.ts';
import { createSteppedClock } from '../support/simulated/clock.ts';

const INSTANT_MS = 1_790_000_000_000;
const NEVER = new AbortController().signal;

it('a project whose wake came to a daemon that is ahead is looked at when its time has come for the daemon that does it', async () => {
  const asked: JobData[] = [];
  const queue = {
    add: async (name: string, { data }: { data: JobData }) => void (name === 'reconcile' && asked.push(data)),
  };
  const data = { projectId: 'p-1', instantMs: INSTANT_MS };
  await createBoundaries({ queue } as unknown as BoundaryDeps)({ queue: 'boundaries', id: 'w', data }, NEVER);
  // Each clock may be off by two seconds.
  const clock = createSteppedClock(INSTANT_MS - 3_900, () => false);
  const lockedAtMs: number[] = [];
  const store = { acquireLease: async () => void lockedAtMs.push(clock.now()) };
  const reconcile = createReconcile({
    ...MAY_DECIDE,
    queue,
    clock,
    store,
    fleet: createFleet({ clock }),
  } as unknown as ReconcileDeps);
  const done = reconcile({ queue: 'reconcile', id: 'p-1', data: asked[0] ?? {} }, NEVER);
  await clock.runTo(INSTANT_MS + 1_000);
  await done;
  expect(lockedAtMs).toEqual([INSTANT_MS]);
});
