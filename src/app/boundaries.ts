import { isBoundary } from '../domain/boundaries.ts';
import type { CallOptions, Project } from '../ports/control-api.ts';
import type { Job, JobHandler } from '../ports/job-queue.ts';
import type { Context } from './context.ts';
import type { Conclusion } from './fleet.ts';
import { mapConcurrently } from './map-concurrently.ts';
import { readComputes } from './read-computes.ts';
import { requestAtBoundary, requestReconcile } from './triggers.ts';
import { compareRanks, rankAt, type WriteRank } from './write-order.ts';

/** A boundary's job comes so much early, in milliseconds, to have the pictures fresh at the instant. */
const HEAD_START_MS = 5_000;
/** Reading ends so long before the instant: what the triggers lead to needs the rest to be ready for it. */
const TRIGGERS_EARLY_MS = 2_000;
const CONCURRENT_READS = 8;
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
  return async (job, signal) => {
    if (job.data.projectId !== undefined) await requestReconcile(context, job.data.projectId);
    else if (job.data.instantMs !== undefined) await crossBoundary(context, job.data.instantMs, signal);
    else
      context.telemetry.log.error({ event: 'ebb.bad_job', job: describeJob(job) }, 'a boundary job without an instant');
    return { kind: 'done' };
  };
}

async function crossBoundary(context: Context, instantMs: number, signal: AbortSignal): Promise<void> {
  const { affected, unknown } = await projectsAt(context, instantMs);
  await refreshUntil(context, affected, instantMs - TRIGGERS_EARLY_MS, signal);
  await context.clock.sleepUntil(instantMs - TRIGGERS_EARLY_MS, signal);
  const projectIds = [...affected, ...unknown];
  await mapConcurrently(projectIds, CONCURRENT_TRIGGERS, (projectId) =>
    requestAtBoundary(context, projectId, instantMs),
  );
}

/** Reads pictures as long as there is time; a picture that is too old at the instant is read then. */
async function refreshUntil(
  context: Context,
  projectIds: readonly string[],
  untilMs: number,
  signal: AbortSignal,
): Promise<void> {
  const { clock, fleet } = context;
  await mapConcurrently(projectIds, CONCURRENT_READS, async (projectId) => {
    const project = fleet.listed(projectId);
    const deadlineMs = clock.realDelayMs(untilMs);
    if (project && deadlineMs > 0 && !signal.aborted) await tryToRead(context, project, { signal, deadlineMs });
  });
}

/** Without a word if it fails: it is read again at the instant, and then it matters. */
async function tryToRead(context: Context, project: Project, options: CallOptions): Promise<void> {
  const begun = { readAtMs: context.clock.now(), readAtMonotonicMs: context.clock.monotonicMs() };
  const answer = await readComputes(context, project, options);
  if (answer.ok) context.fleet.see({ project, computes: answer.value, ...begun });
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
