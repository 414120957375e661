import pLimit, { type LimitFunction } from 'p-limit';
import { step } from '../../common/errors.ts';
import { RECOVERY } from '../../domain/records/recovery-times.ts';
import type { Clock } from '../../ports/clock.ts';
import type { JobHandler, JobOutcome } from '../../ports/job-queue.ts';
import { createDueWrites } from '../apply/due-writes.ts';
import { beginAtBoundary, countAtBoundary, endAtBoundary } from '../fleet/at-boundary.ts';
import { findProject, LIST_SERVES_MS, readInTurn, readProjectQuietly } from '../fleet/cached-projects.ts';
import { FRESH_MS } from '../fleet/fleet.ts';
import { createListWatch } from '../fleet/project-list.ts';
import { MOST_APART_MS, type StoreClock } from '../group/clock-skew.ts';
import {
  expectedPermits,
  getPermits,
  type MissingPermits,
  type Permits,
  type ReadBaseline,
  readBaselineOf,
} from '../reconcile/missing.ts';
import { type ReconcileDeps, reconcile } from '../reconcile/reconcile.ts';
import type { ReportListingDeps } from '../telemetry/outages.ts';
import { LONGEST_LEAD_MS } from '../triggers.ts';

const READS_AT_A_TIME = 16;

/** Lead before the instant at which the list of projects is read once more, in real milliseconds. */
const LIST_AHEAD_MS = 5_000;

/** After the instant the list is read again while computes wait for the rate budget, so often, in real milliseconds. */
const LIST_AGAIN_MS = 20_000;

/** With more of them at one instant, a sleep that the list has just shown is trusted: a reading for each would be late. */
const CROWD = 100;

interface BoundaryJob {
  projectId: string;
  /** Its place among those that this daemon was given: they come in the order of writing. */
  order: number;
  instantMs: number;
  signal: AbortSignal;
}

/** The state of a project shortly before its boundary. */
interface Prepared {
  readBaseline: ReadBaseline;
  /** Permits for its most urgent change, computed before the instant: at the instant all projects of a crowd would wait for that. */
  expected: MissingPermits | undefined;
}

export interface BoundaryReconcileDeps extends ReconcileDeps, ReportListingDeps {
  storeClock: Pick<StoreClock, 'tooFarOff'>;
}

/**
 * Takes one project over a coming boundary: reads the missing facts, has the list of projects confirm them shortly before, waits for the
 * instant and then for a permit of the rate budget, and has only locking, deciding and writing left. Facts that could not be read in time
 * are read after the instant.
 */
export function createBoundaryReconciles(deps: BoundaryReconcileDeps): JobHandler {
  const { clock, storeClock, fleet } = deps;
  const inTurnOf = createTurns();
  const dueWrites = createDueWrites(clock);
  const instants = createInstants(clock);
  const list = createListWatch(deps);
  const isCrowdAt = (instantMs: number) => countAtBoundary(fleet, instantMs) > CROWD;
  let came = 0;

  async function prepare(job: BoundaryJob): Promise<Prepared> {
    const { projectId, instantMs, signal, order } = job;
    const readBaseline = readBaselineOf(deps, { records: await deps.store.records(projectId) }, projectId);
    const isKnown = () => (fleet.cachedProject(projectId)?.readAtMs ?? 0) > readBaseline.notBeforeMs;
    const account = fleet.listed(projectId)?.account;
    const isListed = () => showsChanges(deps, projectId);
    if (clock.realDelayMs(instantMs) > LIST_AHEAD_MS) {
      await list.ensure(LIST_SERVES_MS, { signal, account });
      if (isListed() && !isKnown()) await inTurnOf(account)(() => readEarly(deps, job));
      await instants.waitUntil(instantMs - LIST_AHEAD_MS, signal, order);
    }
    if (clock.realDelayMs(instantMs) > 0) {
      await list.ensure(LIST_AHEAD_MS - 1_000, { signal, account, priority: 'raise' });
      const ageMs = fleet.ageMs(projectId) + clock.realDelayMs(instantMs);
      const serves = ageMs <= FRESH_MS / 2 || fleet.confirmedAgeMs(projectId) <= LIST_AHEAD_MS;
      if (!isKnown() || !serves) await inTurnOf(account)(() => readLate(deps, job));
    }
    const isCrowded = isCrowdAt(instantMs);
    return { readBaseline, expected: isCrowded ? expectedAt(deps, job, readBaseline, isCrowded) : undefined };
  }

  async function reconcileAtBoundary(job: BoundaryJob, { readBaseline, ...prepared }: Prepared): Promise<JobOutcome> {
    const { projectId, instantMs, signal, order } = job;
    await instants.waitUntil(instantMs, signal, order);
    // The clock may have been set meanwhile: decisions made and stored now would be of another time.
    const isSet = clock.now() < instantMs || (await storeClock.tooFarOff()) !== undefined;
    if (isSet) return { kind: 'left' };
    const isCrowded = isCrowdAt(instantMs);
    const expected = prepared.expected ?? expectedAt(deps, job, readBaseline, isCrowded);
    const permits = expected && (await permitsOfListed(job, expected));
    await reconcile(deps, projectId, {
      ...{ signal, boundaryMs: instantMs, dueWrites, readBaseline, isCrowded },
      ...{ priority: expected?.priority ?? 'read', permits },
    });
    return { kind: 'done' };
  }

  /**
   * Waits for permits of the rate budget, as long as the list still shows the project as it was read. A project that would have to be read
   * singly after a long wait gives its permits back and waits for the list instead, which serves all of them; undefined if the list shows
   * that it must be read.
   */
  async function permitsOfListed(
    { projectId, signal }: BoundaryJob,
    needed: MissingPermits,
  ): Promise<Permits | undefined> {
    for (;;) {
      const permits = await getPermits(deps, needed, signal);
      if (!showsChanges(deps, projectId)) return permits;
      const listed = list.ensure(LIST_AGAIN_MS, { signal, account: needed.account, priority: 'raise' });
      if (fleet.isFresh(projectId)) return permits;
      for (const permit of Object.values(permits)) permit?.giveBack();
      await listed;
      if (!fleet.isFresh(projectId)) return undefined;
    }
  }

  return sharing(async ({ data: { projectId, instantMs } }, signal) => {
    if (projectId === undefined || instantMs === undefined) return { kind: 'done' };
    // A daemon whose clock is behind gets its triggers even earlier.
    if (clock.realDelayMs(instantMs) > LONGEST_LEAD_MS + MOST_APART_MS) return { kind: 'done' };
    came += 1;
    const job = { projectId, instantMs, signal, order: came };
    const account = fleet.listed(projectId)?.account;
    beginAtBoundary(fleet, instantMs, account);
    try {
      return await step(`project ${projectId}`, async () => reconcileAtBoundary(job, await prepare(job)));
    } finally {
      endAtBoundary(fleet, instantMs, account);
    }
  });
}

/** A job whose lock was lost while the process was stalled comes a second time: then its outcome is that of the first. */
function sharing(handler: JobHandler): JobHandler {
  const underWay = new Map<string, Promise<JobOutcome>>();
  return (job, signal) => {
    const { projectId, instantMs } = job.data;
    const key = `${projectId} ${instantMs}`;
    const work = underWay.get(key) ?? handler(job, signal).finally(() => underWay.delete(key));
    underWay.set(key, work);
    return work;
  };
}

/** The permits that the most urgent change of a project will need at the instant; undefined if there is none. */
function expectedAt(
  deps: BoundaryReconcileDeps,
  { projectId, instantMs }: BoundaryJob,
  { records }: ReadBaseline,
  isCrowded: boolean,
): MissingPermits | undefined {
  const cachedProject = deps.fleet.cachedProject(projectId);
  const clock = { ...deps.clock, now: () => Math.max(deps.clock.now(), instantMs) };
  return cachedProject && expectedPermits({ ...deps, clock }, cachedProject, records, isCrowded);
}

/** Concurrency limits by account: accounts don't wait for each other. */
function createTurns(): (account: string | undefined) => LimitFunction {
  const turns = new Map<string | undefined, LimitFunction>();
  return (account) => {
    const inTurn = turns.get(account) ?? pLimit(READS_AT_A_TIME);
    turns.set(account, inTurn);
    return inTurn;
  };
}

/** Does the list of projects show changes of this one? False while unknown. */
function showsChanges({ fleet }: ReconcileDeps, projectId: string): boolean {
  return fleet.listShowsChanges.get(fleet.listed(projectId)?.account ?? '') === true;
}

/** Reads the project in its turn; the list will show if that is still current. */
async function readEarly(deps: ReconcileDeps, { projectId, instantMs, signal }: BoundaryJob): Promise<void> {
  const project = deps.fleet.listed(projectId);
  // A reading that would come too late is made after the instant, when it is more urgent.
  const tooLate = deps.clock.timeout(deps.clock.realDelayMs(instantMs) - LIST_AHEAD_MS);
  const waits = { signal: AbortSignal.any([signal, tooLate]), priority: 'read', deadlineMs: RECOVERY.readMs } as const;
  if (!project || tooLate.aborted) return;
  await readInTurn(deps, project, waits).catch((error) => {
    if (!tooLate.aborted) throw error;
  });
}

/** Reads the project before the instant. Fails silently: the project is read again after the boundary, where an error is reported. */
async function readLate(deps: ReconcileDeps, { projectId, instantMs, signal }: BoundaryJob): Promise<void> {
  const deadlineMs = deps.clock.realDelayMs(instantMs);
  if (signal.aborted || deadlineMs <= 0) return;
  const project = await findProject(deps, projectId, { signal, deadlineMs });
  if (project) await readProjectQuietly(deps, project, { signal, deadlineMs, branchesServeMs: FRESH_MS });
}

/** A clock that is set back would have them wait for as long; so much later than expected they look at it again. Real milliseconds. */
const SLACK_MS = 500;

/** Instants that several wait for: all go on together, in their order. */
interface Instants {
  /**
   * Resolves at the instant, or a little later than it was expected at where the clock has been set back; first for those with the
   * smallest `order`, then for those who came first. Rejects when who waits is stopped; those who wait for one instant are stopped
   * together.
   */
  waitUntil(instantMs: number, signal: AbortSignal, order?: number): Promise<void>;
}

interface Waiter {
  order: number;
  resolve(): void;
  reject(reason: unknown): void;
}

/** One timer for each instant: separate timers would fire in any order. */
export function createInstants(clock: Pick<Clock, 'realDelayMs' | 'sleepUntil' | 'timeout'>): Instants {
  const waits = new Map<number, Waiter[]>();

  async function sleep(instantMs: number, signal: AbortSignal): Promise<void> {
    const late = clock.timeout(Math.ceil(clock.realDelayMs(instantMs)) + SLACK_MS);
    try {
      await clock.sleepUntil(instantMs, AbortSignal.any([signal, late]));
    } catch (error) {
      if (!late.aborted) throw error;
    }
  }

  /** Those who wait by the time it is over, in their order. */
  function leave(instantMs: number): Waiter[] {
    const waiters = waits.get(instantMs) ?? [];
    waits.delete(instantMs);
    return waiters.toSorted((a, b) => a.order - b.order);
  }

  return {
    waitUntil(instantMs, signal, order = 0) {
      const isFirst = !waits.has(instantMs);
      const waiters = waits.get(instantMs) ?? [];
      waits.set(instantMs, waiters);
      const coming = new Promise<void>((resolve, reject) => waiters.push({ order, resolve, reject }));
      if (isFirst) {
        void sleep(instantMs, signal).then(
          () => {
            for (const waiter of leave(instantMs)) waiter.resolve();
          },
          (reason) => {
            for (const waiter of leave(instantMs)) waiter.reject(reason);
          },
        );
      }
      return coming;
    },
  };
}
