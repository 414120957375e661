import pLimit from 'p-limit';
import type { JobHandler, JobOutcome } from '../ports/job-queue.ts';
import type { Context, DaemonContext } from './context.ts';
import { createDueWrites, type DueWrites } from './due-writes.ts';
import type { Picture } from './fleet.ts';
import { createInstants } from './instants.ts';
import { lookAt } from './look.ts';
import { FRESH_MS, readPictureQuietly } from './pictures.ts';
import { holdsLongEnough, notBelievedBefore, type SeenProject, takeProject } from './taken-project.ts';
import { requestReconcile } from './triggers.ts';

const READS_AT_A_TIME = 16;

/** A boundary's triggers come 5 s early, and to a daemon whose clock is behind even more so. What is further ahead is left to the keeper. */
const MOST_AHEAD_MS = 8_000;

/** Where a project is about to cross a boundary. */
interface Crossing {
  projectId: string;
  instantMs: number;
  signal: AbortSignal;
}

/**
 * Takes one project over a boundary that is about to come: takes its lease and reads what is, as far as there is time, waits for the
 * instant, and has only deciding and writing left. A project that could not be read by then is reconciled like any other.
 */
export function createCrossings(context: DaemonContext): JobHandler {
  const { clock, store, groupTime } = context;
  const inTurn = pLimit(READS_AT_A_TIME);
  const dueWrites = createDueWrites();
  const instants = createInstants(clock);

  async function cross(crossing: Crossing, seen: SeenProject | undefined): Promise<JobOutcome> {
    const { projectId, instantMs, signal } = crossing;
    await instants.come(instantMs, signal);
    // A clock may have been set meanwhile: what is decided by it now, and stored, would be of another time.
    const isSet = clock.now() < instantMs || (await groupTime.tooFarOff()) !== undefined;
    if (isSet) return { kind: 'left' };
    if (seen && holdsLongEnough(context, seen)) await lookInTurn(context, seen, crossing, dueWrites);
    else await requestReconcile(context, projectId, instantMs);
    return { kind: 'done' };
  }

  return async ({ data: { projectId, instantMs } }, signal) => {
    if (projectId === undefined || instantMs === undefined) return { kind: 'done' };
    if (clock.realDelayMs(instantMs) > MOST_AHEAD_MS) return { kind: 'done' };
    const crossing = { projectId, instantMs, signal };
    const seen = await inTurn(() => seeAhead(context, crossing));
    try {
      return await cross(crossing, seen);
    } finally {
      if (seen) await store.releaseLease(seen.lease);
    }
  };
}

async function lookInTurn(
  context: Context,
  seen: SeenProject,
  { instantMs, signal }: Crossing,
  dueWrites: DueWrites,
): Promise<void> {
  const due = await dueWrites.begin();
  try {
    signal.throwIfAborted();
    await lookAt(context, seen, { signal, boundaryMs: instantMs, due });
  } finally {
    due.end();
  }
}

/** The project, if it can be taken and read before the instant. */
async function seeAhead(context: Context, crossing: Crossing): Promise<SeenProject | undefined> {
  if (crossing.signal.aborted || context.clock.realDelayMs(crossing.instantMs) <= 0) return undefined;
  const taken = await takeProject(context, crossing.projectId);
  if (!taken) return undefined;
  let picture: Picture | undefined;
  try {
    picture = await pictureAhead(context, crossing, notBelievedBefore(context, taken));
    return picture && { ...taken, picture };
  } finally {
    if (!picture) await context.store.releaseLease(taken.lease);
  }
}

/** One that will be fresh at the instant. Without a word if there is none: it is read again then, and then it matters. */
async function pictureAhead(
  context: Context,
  { projectId, instantMs, signal }: Crossing,
  notBeforeMs: number,
): Promise<Picture | undefined> {
  const { fleet, clock } = context;
  const deadlineMs = clock.realDelayMs(instantMs);
  const known = fleet.picture(projectId);
  if (known && known.readAtMs > notBeforeMs && fleet.ageMs(projectId) + deadlineMs <= FRESH_MS / 2) return known;
  const project = fleet.listed(projectId);
  if (!project || deadlineMs <= 0) return undefined;
  const answer = await readPictureQuietly(context, project, { signal, deadlineMs });
  return answer.ok ? answer.value : undefined;
}
