import pLimit from 'p-limit';
import type { JobHandler, JobOutcome } from '../../ports/job-queue.ts';
import { createDueWrites, type DueWrites } from '../apply/due-writes.ts';
import { FRESH_MS, readProjectQuietly } from '../fleet/cached-projects.ts';
import type { CachedProject } from '../fleet/fleet.ts';
import { type LockedAndRead, notBelievedBefore } from '../fleet/known-records.ts';
import type { StoreClock } from '../group/clock-skew.ts';
import { holdsLongEnough, lockProject } from '../leases/locked-project.ts';
import { type ReconcileDeps, reconcileLocked } from '../reconcile/reconcile.ts';
import { requestReconcile } from '../triggers.ts';
import { createInstants } from './instants.ts';

const READS_AT_A_TIME = 16;

/** A boundary's triggers come 5 s early, and to a daemon whose clock is behind even more so. What is further ahead is left to the keeper. */
const MOST_AHEAD_MS = 8_000;

/** Where a project is about to cross a boundary. */
interface Crossing {
  projectId: string;
  instantMs: number;
  signal: AbortSignal;
}

export interface CrossingDeps extends ReconcileDeps {
  storeClock: Pick<StoreClock, 'tooFarOff'>;
}

/**
 * Takes one project over a boundary that is about to come: takes its lease and reads what is, as far as there is time, waits for the
 * instant, and has only deciding and writing left. A project that could not be read by then is reconciled like any other.
 */
export function createCrossings(deps: CrossingDeps): JobHandler {
  const { clock, store, storeClock } = deps;
  const inTurn = pLimit(READS_AT_A_TIME);
  const dueWrites = createDueWrites();
  const instants = createInstants(clock);

  async function cross(crossing: Crossing, seen: LockedAndRead | undefined): Promise<JobOutcome> {
    const { projectId, instantMs, signal } = crossing;
    await instants.come(instantMs, signal);
    // A clock may have been set meanwhile: what is decided by it now, and stored, would be of another time.
    const isSet = clock.now() < instantMs || (await storeClock.tooFarOff()) !== undefined;
    if (isSet) return { kind: 'left' };
    if (seen && holdsLongEnough(deps, seen)) await lookInTurn(deps, seen, crossing, dueWrites);
    else await requestReconcile(deps, projectId, instantMs);
    return { kind: 'done' };
  }

  return async ({ data: { projectId, instantMs } }, signal) => {
    if (projectId === undefined || instantMs === undefined) return { kind: 'done' };
    if (clock.realDelayMs(instantMs) > MOST_AHEAD_MS) return { kind: 'done' };
    const crossing = { projectId, instantMs, signal };
    const seen = await inTurn(() => seeAhead(deps, crossing));
    try {
      return await cross(crossing, seen);
    } finally {
      if (seen) await store.releaseLease(seen.lease);
    }
  };
}

async function lookInTurn(
  deps: ReconcileDeps,
  seen: LockedAndRead,
  { instantMs, signal }: Crossing,
  dueWrites: DueWrites,
): Promise<void> {
  const due = await dueWrites.begin();
  try {
    signal.throwIfAborted();
    // Others may have read it since.
    const newest = deps.fleet.cachedProject(seen.cachedProject.project.projectId) ?? seen.cachedProject;
    await reconcileLocked(deps, { ...seen, cachedProject: newest }, { signal, boundaryMs: instantMs, due });
  } finally {
    due.end();
  }
}

/** The project, if it can be taken and read before the instant. */
async function seeAhead(deps: ReconcileDeps, crossing: Crossing): Promise<LockedAndRead | undefined> {
  if (crossing.signal.aborted || deps.clock.realDelayMs(crossing.instantMs) <= 0) return undefined;
  const locked = await lockProject(deps, crossing.projectId);
  if (!locked) return undefined;
  let cachedProject: CachedProject | undefined;
  try {
    cachedProject = await cachedProjectAhead(deps, crossing, notBelievedBefore(deps, locked, crossing.projectId));
    return cachedProject && { ...locked, cachedProject };
  } finally {
    if (!cachedProject) await deps.store.releaseLease(locked.lease);
  }
}

/** One that will be fresh at the instant. Without a word if there is none: it is read again then, and then it matters. */
async function cachedProjectAhead(
  deps: ReconcileDeps,
  { projectId, instantMs, signal }: Crossing,
  notBeforeMs: number,
): Promise<CachedProject | undefined> {
  const { fleet, clock } = deps;
  const deadlineMs = clock.realDelayMs(instantMs);
  const known = fleet.cachedProject(projectId);
  if (known && known.readAtMs > notBeforeMs && fleet.ageMs(projectId) + deadlineMs <= FRESH_MS / 2) return known;
  const project = fleet.listed(projectId);
  if (!project || deadlineMs <= 0) return undefined;
  const answer = await readProjectQuietly(deps, project, { signal, deadlineMs, branchesServeMs: FRESH_MS });
  return answer.ok ? answer.value : undefined;
}
