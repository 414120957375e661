import { isBoundary } from '../domain/boundaries.ts';
import type { Job, JobHandler } from '../ports/job-queue.ts';
import type { Context } from './context.ts';
import type { Conclusion } from './fleet.ts';
import { mapConcurrently } from './map-concurrently.ts';
import { requestCrossing, requestReconcile } from './triggers.ts';
import { compareRanks, rankAt, type WriteRank } from './write-order.ts';

/** A boundary's job comes so much early, in milliseconds, to have the pictures fresh at the instant. */
const HEAD_START_MS = 5_000;
/** Triggers on their way to the queue at once: enough to keep it busy, and still in their order. */
const CONCURRENT_TRIGGERS = 32;

/**
 * Ensures one delayed job for each distinct next boundary of these computes. Several daemons ensure the same jobs: the id
 * holds the instant. What was ensured in this round of the keeper is not ensured again.
 */
export async function scheduleBoundaries(context: Context, conclusions: Iterable<Conclusion>): Promise<void> {
  const { queue, scheduledBoundaries } = context;
  const nowMs = context.clock.now();
  const ahead = [...conclusions].flatMap(({ nextBoundaryMs }) => nextBoundaryMs ?? []).filter((ms) => ms > nowMs);
  for (const instantMs of new Set(ahead)) {
    if (scheduledBoundaries.has(instantMs)) continue;
    await queue.addAt('boundaries', { id: `b-${instantMs}`, atMs: instantMs - HEAD_START_MS, data: { instantMs } });
    scheduledBoundaries.add(instantMs);
  }
}

/** Handles what comes at an instant: a boundary of the fleet, or a single project that asked to be woken. */
export function createBoundaries(context: Context): JobHandler {
  return async (job) => {
    if (job.data.projectId !== undefined) await requestReconcile(context, job.data.projectId);
    else if (job.data.instantMs !== undefined) await crossBoundary(context, job.data.instantMs);
    else
      context.telemetry.log.error({ event: 'ebb.bad_job', job: describeJob(job) }, 'a boundary job without an instant');
    return { kind: 'done' };
  };
}

/** Whoever gets the trigger reads the project, and so each daemon reads what it will write to. */
async function crossBoundary(context: Context, instantMs: number): Promise<void> {
  const { affected, unknown } = await projectsAt(context, instantMs);
  const request = context.clock.now() < instantMs ? requestCrossing : requestReconcile;
  await mapConcurrently([...affected, ...unknown], CONCURRENT_TRIGGERS, (projectId) =>
    request(context, projectId, instantMs),
  );
}

/**
 * The projects of which a compute has a boundary at this instant, in the order in which they are to be written to; and those
 * that only other daemons of the group have looked at, for which this one can't say.
 */
async function projectsAt(context: Context, instantMs: number): Promise<{ affected: string[]; unknown: string[] }> {
  const { fleet, policies, store, overrides } = context;
  const affected = new Map<string, WriteRank>();
  const concluded = new Set<string>();
  for (const conclusion of fleet.conclusions()) {
    const { compute, record } = conclusion;
    const { projectId } = compute;
    concluded.add(projectId);
    const input = { policies, compute, baseline: record.baseline, holds: overrides.holds };
    if (!isBoundary(input, instantMs)) continue;
    const rank = rankAt(context, conclusion, instantMs);
    const before = affected.get(projectId);
    affected.set(projectId, before && compareRanks(before, rank) <= 0 ? before : rank);
  }
  const known = new Set([...fleet.projectIds(), ...(await store.projectIds())]);
  return {
    affected: [...affected].toSorted(([, a], [, b]) => compareRanks(a, b)).map(([projectId]) => projectId),
    unknown: [...known].filter((projectId) => !concluded.has(projectId)),
  };
}

function describeJob({ queue, id }: Job): string {
  return `${queue}/${id}`;
}
