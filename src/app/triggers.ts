import pLimit from 'p-limit';
import type { Clock } from '../ports/clock.ts';
import type { JobQueue } from '../ports/job-queue.ts';
import type { RunInBackground } from './background.ts';

/** A boundary's job comes so much early, in milliseconds: it decides how long its projects need before the instant. */
export const LONGEST_LEAD_MS = 600_000;

/** Triggers on their way to the queue at a time: enough to keep it busy. */
const REQUESTS_AT_A_TIME = 32;

export interface TriggerDeps {
  queue: JobQueue;
}

/** Asks for a reconcile of a project soon; many requests make one reconcile. `instantMs`: the boundary that is the reason. */
export async function requestReconcile({ queue }: TriggerDeps, projectId: string, instantMs?: number): Promise<void> {
  const data = { projectId, ...(instantMs !== undefined && { instantMs }) };
  await queue.add('reconcile', { key: projectId, data });
}

/** Asks for a reconcile of a project whose wake has come. A daemon whose clock is behind the one that took the wake waits for its own. */
export async function requestWoken({ queue }: TriggerDeps, projectId: string, notBeforeMs?: number): Promise<void> {
  const data = { projectId, ...(notBeforeMs !== undefined && { notBeforeMs }) };
  await queue.add('reconcile', { key: projectId, data });
}

/** Requests a reconcile of each of these projects soon. */
export async function requestReconciles(deps: TriggerDeps, projectIds: readonly string[]): Promise<void> {
  await pLimit(REQUESTS_AT_A_TIME).map(projectIds, (projectId) => requestReconcile(deps, projectId));
}

/** Requests a boundary reconcile of a project, once for all daemons, and returns if that is still under way. */
export async function requestBoundaryReconcile(
  { queue }: TriggerDeps,
  projectId: string,
  instantMs: number,
): Promise<void> {
  const data = { projectId, instantMs };
  await queue.addAt('crossings', { id: `c-${projectId}-${instantMs}`, atMs: instantMs - LONGEST_LEAD_MS, data });
}

/**
 * Requests a reconcile of a project at an instant. The key contains the instant, so several daemons request it once. It may be requested
 * again at any time: a daemon whose clock is ahead takes the wake before the instant has come for the others.
 */
export async function wakeAt({ queue }: TriggerDeps, projectId: string, instantMs: number): Promise<void> {
  const key = `w-${projectId}-${Math.ceil(instantMs)}`;
  await queue.add('boundaries', { key, atMs: instantMs, data: { projectId, instantMs } });
}

/** Asks that the operations of a project are followed to their end; one follower for each project is enough. */
export async function requestFollowing({ queue }: TriggerDeps, projectId: string): Promise<void> {
  await queue.add('operations', { key: projectId, data: { projectId } });
}

export interface ScheduleDeps extends TriggerDeps {
  clock: Clock;
  /** Boundaries that are surely in the queue; forgotten by every round of the resync loop, since a queue can be lost. */
  scheduledBoundaries: Set<number>;
}

/** A compute, and when something else is right for it. */
interface Ahead {
  nextBoundaryMs?: number | undefined;
}

/**
 * Ensures one delayed job for each distinct next boundary of these computes. The job's id contains the instant, so several daemons ensure
 * the same jobs. Jobs ensured in this round of the resync loop are skipped.
 */
export async function scheduleBoundaries(
  { queue, clock, scheduledBoundaries }: ScheduleDeps,
  evaluatedComputes: Iterable<Ahead>,
): Promise<void> {
  const nowMs = clock.now();
  const ahead = [...evaluatedComputes].flatMap(({ nextBoundaryMs }) => nextBoundaryMs ?? []).filter((ms) => ms > nowMs);
  for (const instantMs of new Set(ahead)) {
    if (scheduledBoundaries.has(instantMs)) continue;
    // At once: many projects come to know the same boundary in the same moment.
    scheduledBoundaries.add(instantMs);
    try {
      await queue.addAt('boundaries', { id: `b-${instantMs}`, atMs: instantMs - LONGEST_LEAD_MS, data: { instantMs } });
    } catch (error) {
      scheduledBoundaries.delete(instantMs);
      throw error;
    }
  }
}

export interface EnsureTriggersDeps extends ScheduleDeps {
  rhythm: { inventoryMs: number };
  fleet: { evaluatedComputes(): Iterable<Ahead> };
  runInBackground: RunInBackground;
}

/** Ensures the inventory's schedule and the next boundaries in the queue. */
export async function ensureTriggers(deps: EnsureTriggersDeps): Promise<void> {
  await deps.runInBackground('triggers', async () => {
    await deps.queue.every('inventory', deps.rhythm.inventoryMs);
    deps.scheduledBoundaries.clear();
    await scheduleBoundaries(deps, deps.fleet.evaluatedComputes());
  });
}
