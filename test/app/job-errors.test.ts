import { expect, it } from 'vitest';
import { type BoundaryDeps, createBoundaries } from '../../src/app/boundaries/boundaries.ts';
import { type BoundaryReconcileDeps, createBoundaryReconciles } from '../../src/app/boundaries/boundary-reconciles.ts';
import { createFleet } from '../../src/app/fleet/fleet.ts';
import { createReconcile, type ReconcileDeps } from '../../src/app/reconcile/reconcile.ts';
import { describeChain } from '../../src/common/errors.ts';
import type { JobHandler, QueueName } from '../../src/ports/job-queue.ts';
import { currentRules, MAY_DECIDE } from '../support/builders.ts';

const NOW = Date.parse('2026-11-23T08:00:00Z');

/** The line of the log for a job that fails because the engine answers nothing. */
async function lineOf(handlerOf: (deps: object) => JobHandler, data: { projectId?: string; instantMs?: number }) {
  const refuse = () => Promise.reject(new Error('away'));
  const clock = {
    now: () => NOW,
    monotonicMs: () => NOW,
    realDelayMs: (ms: number) => ms - NOW,
    sleep: async () => {},
  };
  const handle = handlerOf({
    ...{ clock, fleet: createFleet({ clock } as never), rules: currentRules(), overrides: { holds: [], freezes: [] } },
    store: { projectIds: async () => ['p-one'], records: refuse, acquireLease: refuse, overrides: refuse },
    ...{ queue: { add: refuse }, api: {}, ...MAY_DECIDE },
  });
  const job = { queue: 'boundaries' as QueueName, id: 'j', data };
  return handle(job, new AbortController().signal).then(String, describeChain);
}

it.each([
  [
    'a boundary',
    (deps: object) => createBoundaries(deps as BoundaryDeps),
    { instantMs: NOW },
    /^the boundary at 2026-11-23T08:00:00Z: project p-one: away$/,
  ],
  [
    'a project that is woken',
    (deps: object) => createBoundaries(deps as BoundaryDeps),
    { projectId: 'p-one' },
    /^project p-one: away$/,
  ],
  [
    'a project at a boundary',
    (deps: object) => createBoundaryReconciles(deps as BoundaryReconcileDeps),
    { projectId: 'p-one', instantMs: NOW },
    /^project p-one: (.*: )?away$/,
  ],
  [
    'a reconcile',
    (deps: object) => createReconcile(deps as ReconcileDeps),
    { projectId: 'p-one' },
    /^project p-one: (.*: )?away$/,
  ],
])('an error of a job for %s names the project', async (_, handlerOf, data, line) => {
  expect(await lineOf(handlerOf, data)).toMatch(line);
});
