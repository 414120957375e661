import type { JobHandler } from '../ports/job-queue.ts';
import type { Context } from './context.ts';
import { lookAt, type Occasion } from './look.ts';
import { freshPicture } from './pictures.ts';
import { notBelievedBefore, READ_DEADLINE_MS, type TakenProject, takeProject } from './taken-project.ts';
import { wakeAt } from './triggers.ts';

/** How long to wait for whoever holds the project's lease, in milliseconds. */
const LEASE_RETRY_MS = 500;

/** When to look again at a project that could not be read, in milliseconds. */
const READ_RETRY_MS = 5_000;

/** A daemon whose clock is behind the one that crossed a boundary waits for its own, at most so long. */
const MOST_CLOCK_SKEW_MS = 2_000;

/**
 * Makes one project as it should be: reads what is, decides what should be, does the difference. It has one attempt and never
 * delays itself (a job that delays itself loses triggers); what waits asks to be woken.
 */
export function createReconcile(context: Context): JobHandler {
  return async ({ data: { projectId, instantMs } }, signal) => {
    if (projectId === undefined) return { kind: 'done' };
    await waitForOwnClock(context, instantMs, signal);
    const taken = await takeProject(context, projectId);
    if (!taken) {
      await wakeAt(context, projectId, context.clock.now() + LEASE_RETRY_MS);
      return { kind: 'done' };
    }
    try {
      await reconcileProject(context, taken, projectId, { signal, boundaryMs: instantMs });
    } finally {
      await context.store.releaseLease(taken.lease);
    }
    return { kind: 'done' };
  };
}

async function waitForOwnClock({ clock }: Context, instantMs: number | undefined, signal: AbortSignal): Promise<void> {
  const nowMs = clock.now();
  if (instantMs === undefined || instantMs <= nowMs || instantMs - nowMs > MOST_CLOCK_SKEW_MS) return;
  await clock.sleepUntil(instantMs, signal);
}

async function reconcileProject(
  context: Context,
  taken: TakenProject,
  projectId: string,
  occasion: Occasion,
): Promise<void> {
  const { fleet, clock } = context;
  const { signal } = occasion;
  const begunMs = clock.monotonicMs();
  const notBeforeMs = notBelievedBefore(context, taken);
  const picture = await freshPicture(context, projectId, { notBeforeMs, signal, deadlineMs: READ_DEADLINE_MS });
  signal.throwIfAborted();
  if (picture) return lookAt(context, { ...taken, picture }, occasion);
  // What a list that is older than this look does not have may be in the next.
  const mayExist = fleet.listed(projectId) !== undefined || fleet.listAskedAtMonotonicMs < begunMs;
  if (mayExist) await wakeAt(context, projectId, clock.now() + READ_RETRY_MS);
}
