import pLimit from 'p-limit';
import type { EvaluatedCompute } from '../domain/evaluate/evaluate.ts';
import type { Clock } from '../ports/clock.ts';
import type { JobData, JobQueue } from '../ports/job-queue.ts';
import type { RunInBackground } from './background.ts';

/** How long before its instant a boundary job first runs, in milliseconds. The job then computes when to read its projects. */
export const MAX_LEAD_MS = 600_000;

/** How many triggers are sent to the queue concurrently: enough to keep it busy. */
const CONCURRENT_REQUESTS = 32;

export interface TriggerDeps {
  queue: JobQueue;
}

/**
 * Requests a reconcile of a project soon; several requests lead to one reconcile. `instantMs`: the boundary that is the reason. `notBeforeMs`:
 * a daemon whose clock is behind waits until its own clock shows this instant; if absent, `instantMs`.
 */
export async function requestReconcile(
  { queue }: TriggerDeps,
  projectId: string,
  due: Pick<JobData, 'instantMs' | 'notBeforeMs'> = {},
): Promise<void> {
  await queue.add('reconcile', { key: projectId, data: { projectId, ...due } });
}

export async function requestReconciles(deps: TriggerDeps, projectIds: readonly string[]): Promise<void> {
  await pLimit(CONCURRENT_REQUESTS).map(projectIds, (projectId) => requestReconcile(deps, projectId));
}

/** Requests a boundary reconcile of a project. The job's id makes it one job for all daemons. */
export async function requestBoundaryReconcile(
  { queue }: TriggerDeps,
  projectId: string,
  instantMs: number,
): Promise<void> {
  const data = { projectId, instantMs };
  await queue.addAt('crossings', { id: `c-${projectId}-${instantMs}`, atMs: instantMs - MAX_LEAD_MS, data });
}

/**
 * Requests a reconcile of a project at an instant. The key contains the instant, so that several daemons make one job. After the job has run,
 * the same wake may be requested again: a daemon whose clock is ahead may have run it too early for the others.
 */
export async function wakeAt({ queue }: TriggerDeps, projectId: string, instantMs: number): Promise<void> {
  const key = `w-${projectId}-${Math.ceil(instantMs)}`;
  await queue.add('boundaries', { key, atMs: instantMs, data: { projectId, instantMs } });
}

/**
 * Schedules a reconcile of a project that could not be locked, read or changed, after `afterMs`. Does nothing if this daemon has already
 * scheduled an earlier retry: otherwise each trigger in the meantime would start its own series of retries.
 */
export async function tryAgain(
  deps: TriggerDeps & { clock: Pick<Clock, 'now'>; fleet: { retryAtMs: Map<string, number> } },
  projectId: string,
  afterMs: number,
): Promise<void> {
  const { retryAtMs } = deps.fleet;
  const nowMs = deps.clock.now();
  const nextMs = retryAtMs.get(projectId) ?? 0;
  const instantMs = nowMs + afterMs;
  if (nextMs > nowMs && nextMs <= instantMs) return;
  await wakeAt(deps, projectId, instantMs);
  retryAtMs.set(projectId, instantMs);
}

/** Requests that the operations of a project are followed to their end, by one job for each project. */
export async function requestFollowing({ queue }: TriggerDeps, projectId: string): Promise<void> {
  await queue.add('operations', { key: projectId, data: { projectId } });
}

export interface ScheduleDeps extends TriggerDeps {
  clock: Clock;
  /** Boundaries whose jobs are in the queue. Each round of the resync loop clears them, since a queue may lose jobs. */
  scheduledBoundaries: Set<number>;
}

/**
 * Adds one delayed job for each distinct next boundary of these computes. The job's id contains the instant, so that several daemons add
 * the same jobs. Jobs that this daemon has added since the last round of the resync loop are skipped.
 */
export async function scheduleBoundaries(
  { queue, clock, scheduledBoundaries }: ScheduleDeps,
  evaluatedComputes: Iterable<Pick<EvaluatedCompute, 'nextBoundaryMs'>>,
): Promise<void> {
  const nowMs = clock.now();
  const ahead = [...evaluatedComputes].flatMap(({ nextBoundaryMs }) => nextBoundaryMs ?? []).filter((ms) => ms > nowMs);
  for (const instantMs of new Set(ahead)) {
    if (scheduledBoundaries.has(instantMs)) continue;
    // Added before the call returns: many projects schedule the same boundary at the same time.
    scheduledBoundaries.add(instantMs);
    try {
      await queue.addAt('boundaries', { id: `b-${instantMs}`, atMs: instantMs - MAX_LEAD_MS, data: { instantMs } });
    } catch (error) {
      scheduledBoundaries.delete(instantMs);
      throw error;
    }
  }
}

export interface EnsureTriggersDeps extends ScheduleDeps {
  rhythm: { inventoryMs: number };
  fleet: { evaluatedComputes(): Iterable<Pick<EvaluatedCompute, 'nextBoundaryMs'>> };
  runInBackground: RunInBackground;
}

/** Adds the inventory's schedule and the next boundaries to the queue, where they are missing. */
export async function ensureTriggers(deps: EnsureTriggersDeps): Promise<void> {
  await deps.runInBackground('triggers', async () => {
    await deps.queue.every('inventory', deps.rhythm.inventoryMs);
    deps.scheduledBoundaries.clear();
    await scheduleBoundaries(deps, deps.fleet.evaluatedComputes());
  });
}
