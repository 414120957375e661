import pLimit, { type LimitFunction } from 'p-limit';
import { step } from '../../common/errors.ts';
import { RECOVERY } from '../../domain/records/recovery-times.ts';
import type { Clock } from '../../ports/clock.ts';
import type { JobHandler, JobOutcome } from '../../ports/job-queue.ts';
import { createDueWrites } from '../apply/due-writes.ts';
import { beginAtBoundary, countAtBoundary, endAtBoundary } from '../fleet/at-boundary.ts';
import { findProject, LIST_VALID_MS, readInTurn, readProjectQuietly } from '../fleet/cached-projects.ts';
import { FRESH_MS } from '../fleet/fleet.ts';
import { createListWatch } from '../fleet/list-watch.ts';
import { MAX_CLOCK_SKEW_MS } from '../group/clock-skew.ts';
import {
  expectedPermits,
  getPermits,
  includesWrites,
  type MissingPermits,
  mayShowEndedOperation,
  type Permits,
  type RequestedReading,
  requestReading,
} from '../reconcile/missing.ts';
import { type ReconcileDeps, reconcile } from '../reconcile/reconcile.ts';
import type { ReportListingDeps } from '../telemetry/outages.ts';
import { MAX_LEAD_MS } from '../triggers.ts';

const CONCURRENT_READS = 16;

/** How long before the instant the list of projects is read for the last time, in real milliseconds. */
const LAST_LIST_LEAD_MS = 5_000;

/** Interval between readings of the list after the instant, while projects wait for permits, in real milliseconds. */
const LIST_EVERY_MS = 20_000;

/** With more projects than this at one instant, there is no time to read each again: an unchanged entry in the list counts as proof of sleep. */
const CROWD_SIZE = 100;

interface BoundaryJob {
  projectId: string;
  /** The position among this daemon's jobs. Jobs arrive in the order in which they should write. */
  order: number;
  instantMs: number;
  signal: AbortSignal;
}

interface PreparedProject {
  requestedReading: RequestedReading;
  /** The permits for its most urgent change. Set only in a crowd, where at the instant there is no time to compute them. */
  expectedPermits: MissingPermits | undefined;
}

export interface BoundaryReconcileDeps extends ReconcileDeps, ReportListingDeps {}

/**
 * Handles boundary jobs, each of one project. Reads the project early, confirms the reading by the list of projects shortly before the
 * instant, and waits for the instant. Then only a permit, the lock, the decision and the write are left. A project that could not be read
 * in time is read after the instant.
 */
export function createBoundaryReconciles(deps: BoundaryReconcileDeps): JobHandler {
  const { clock, storeClock, fleet } = deps;
  const readLimitOf = createReadLimits();
  const dueWrites = createDueWrites(clock);
  const instants = createInstantQueue(clock);
  const list = createListWatch(deps);
  const isCrowdAt = (instantMs: number) => countAtBoundary(fleet, instantMs) > CROWD_SIZE;
  let jobCount = 0;

  async function prepare(job: BoundaryJob): Promise<PreparedProject> {
    const { projectId, instantMs, signal, order } = job;
    const requestedReading = requestReading(deps, { records: await deps.store.records(projectId) }, projectId);
    const isRead = () => isReadSince(deps, projectId, requestedReading);
    const account = fleet.listed(projectId)?.account;
    if (clock.realDelayMs(instantMs) > LAST_LIST_LEAD_MS) {
      await list.ensure(LIST_VALID_MS, { signal, account }, projectId);
      if (listShowsChanges(deps, projectId) && !isRead()) await readLimitOf(account)(() => readEarly(deps, job));
      await instants.waitUntil(instantMs - LAST_LIST_LEAD_MS, signal, order);
    }
    if (clock.realDelayMs(instantMs) > 0) {
      await list.ensure(LAST_LIST_LEAD_MS - 1_000, { signal, account, priority: 'raise' }, projectId);
      if (!isRead() || !isRecentAt(deps, projectId, instantMs)) await readLimitOf(account)(() => readLate(deps, job));
    }
    const expectedPermits = isCrowdAt(instantMs) ? expectedAt(deps, job, requestedReading, true) : undefined;
    return { requestedReading, expectedPermits };
  }

  async function reconcileAtBoundary(job: BoundaryJob, prepared: PreparedProject): Promise<JobOutcome> {
    const { requestedReading } = prepared;
    const { projectId, instantMs, signal, order } = job;
    await instants.waitUntil(instantMs, signal, order);
    // If the clock was set meanwhile, decisions would be made for a wrong time.
    const clockWasSet = clock.now() < instantMs || (await storeClock.excessiveOffsetMs()) !== undefined;
    if (clockWasSet) return { kind: 'left' };
    const isCrowded = isCrowdAt(instantMs);
    const expected = prepared.expectedPermits ?? expectedAt(deps, job, requestedReading, isCrowded);
    const permits = expected && (await waitForPermits(job, expected));
    // A project that was never read may need a raise: its reading comes after known raises, and before other readings.
    const priority = expected?.priority ?? (fleet.cachedProject(projectId) ? 'read' : 'lowering');
    const options = { signal, boundaryMs: instantMs, dueWrites, requestedReading, isCrowded, priority, permits };
    await reconcile(deps, projectId, options);
    return { kind: 'done' };
  }

  /**
   * Waits for permits of the rate budget. If the reading of the project has become too old meanwhile, gives them back, so that they go to the next
   * project, and waits for the list of projects, which confirms all readings with few requests. Returns undefined if the project must be read
   * again.
   */
  async function waitForPermits(
    { projectId, signal }: BoundaryJob,
    needed: MissingPermits,
  ): Promise<Permits | undefined> {
    const options = { signal, account: needed.account, priority: 'raise' } as const;
    fleet.waitingAtBoundary.set(projectId, needed.priority);
    try {
      for (;;) {
        const permits = await getPermits(deps, needed, signal);
        if (!listShowsChanges(deps, projectId)) return permits;
        const isFresh = fleet.isFresh(projectId);
        // Also if this project is fresh: the next ones will need the list.
        const listed = list.ensure(LIST_EVERY_MS, options, projectId);
        if (isFresh) return permits;
        for (const permit of Object.values(permits)) permit?.giveBack();
        await listed;
        if (!(await list.isConfirmed(projectId, LIST_EVERY_MS, options))) return undefined;
      }
    } finally {
      fleet.waitingAtBoundary.delete(projectId);
    }
  }

  return joiningRepeats(async ({ data: { projectId, instantMs } }, signal) => {
    if (projectId === undefined || instantMs === undefined) return { kind: 'done' };
    // The job came too early, even for a daemon whose clock is behind.
    if (clock.realDelayMs(instantMs) > MAX_LEAD_MS + MAX_CLOCK_SKEW_MS) return { kind: 'done' };
    jobCount += 1;
    const job = { projectId, instantMs, signal, order: jobCount };
    const account = fleet.listed(projectId)?.account;
    beginAtBoundary(fleet, instantMs, account);
    try {
      return await step(`project ${projectId}`, async () => reconcileAtBoundary(job, await prepare(job)));
    } finally {
      endAtBoundary(fleet, instantMs, account);
    }
  });
}

/** Wraps a handler: a job that is delivered again, since its lock was lost while the process was stalled, joins the first run. */
function joiningRepeats(handler: JobHandler): JobHandler {
  const running = new Map<string, Promise<JobOutcome>>();
  return (job, signal) => {
    const key = `${job.data.projectId} ${job.data.instantMs}`;
    const run = running.get(key) ?? handler(job, signal).finally(() => running.delete(key));
    running.set(key, run);
    return run;
  };
}

/** Returns the permits that the most urgent change of a project will need at the instant; undefined if no change is expected. */
function expectedAt(
  deps: BoundaryReconcileDeps,
  { projectId, instantMs }: BoundaryJob,
  { records }: RequestedReading,
  isCrowded: boolean,
): MissingPermits | undefined {
  const cachedProject = deps.fleet.cachedProject(projectId);
  const clock = { ...deps.clock, now: () => Math.max(deps.clock.now(), instantMs) };
  return cachedProject && expectedPermits({ ...deps, clock }, cachedProject, records, isCrowded);
}

/** Creates concurrency limits of reads by account, so that accounts don't wait for each other. */
function createReadLimits(): (account: string | undefined) => LimitFunction {
  const limits = new Map<string | undefined, LimitFunction>();
  return (account) => {
    const limit = limits.get(account) ?? pLimit(CONCURRENT_READS);
    limits.set(account, limit);
    return limit;
  };
}

/** Returns true if the list of projects is known to show changes of this project's account. */
function listShowsChanges({ fleet }: ReconcileDeps, projectId: string): boolean {
  return fleet.listShowsChanges.get(fleet.listed(projectId)?.account ?? '') === true;
}

/** Returns true if the cached reading began after the requested instant, or includes all recorded writes. */
function isReadSince({ fleet }: ReconcileDeps, projectId: string, requested: RequestedReading): boolean {
  const cached = fleet.cachedProject(projectId);
  if (!cached) return false;
  if (cached.readAtMs > requested.notBeforeMs) return true;
  return !mayShowEndedOperation({ fleet }, requested, projectId) && includesWrites({ fleet }, cached, requested);
}

/** Returns true if the reading will be new enough at the instant without another request, or if a list has just confirmed it. */
function isRecentAt({ fleet, clock }: ReconcileDeps, projectId: string, instantMs: number): boolean {
  const ageMs = fleet.ageMs(projectId) + clock.realDelayMs(instantMs);
  const isOwn = fleet.cachedProject(projectId)?.isShared === undefined;
  return (isOwn && ageMs <= FRESH_MS / 2) || fleet.confirmedAgeMs(projectId) <= LAST_LIST_LEAD_MS;
}

/** Reads the project well before the instant. The list of projects will show whether the reading is still valid. */
async function readEarly(deps: ReconcileDeps, { projectId, instantMs, signal }: BoundaryJob): Promise<void> {
  const project = deps.fleet.listed(projectId);
  // A reading that is not done in time is left for after the instant, when it gets a higher priority.
  const tooLate = deps.clock.timeout(deps.clock.realDelayMs(instantMs) - LAST_LIST_LEAD_MS);
  if (!project || tooLate.aborted) return;
  const stop = AbortSignal.any([signal, tooLate]);
  try {
    await readInTurn(deps, project, { signal: stop, priority: 'read', deadlineMs: RECOVERY.readMs });
  } catch (error) {
    if (!tooLate.aborted) throw error;
  }
}

/** Reads the project just before the instant. Errors are not reported here: the reading after the boundary reports them. */
async function readLate(deps: ReconcileDeps, { projectId, instantMs, signal }: BoundaryJob): Promise<void> {
  const deadlineMs = deps.clock.realDelayMs(instantMs);
  if (signal.aborted || deadlineMs <= 0) return;
  const project = await findProject(deps, projectId, { signal, deadlineMs });
  if (project) await readProjectQuietly(deps, project, { signal, deadlineMs, branchesMaxAgeMs: FRESH_MS });
}

/** If the clock is set back, a wait ends this long after its expected end, in real milliseconds. */
const RECHECK_AFTER_MS = 500;

/** Lets several jobs wait for the same instant and continue in their order. */
interface InstantQueue {
  /**
   * Resolves at the instant, in the order of `order`, then of the calls. If the clock is set back, resolves soon after the expected time.
   * If the signal of the first call for an instant is aborted, all calls for this instant reject.
   */
  waitUntil(instantMs: number, signal: AbortSignal, order?: number): Promise<void>;
}

interface Waiter {
  order: number;
  resolve(): void;
  reject(reason: unknown): void;
}

/** Creates the queue with one timer for each instant, since separate timers would fire in any order. */
export function createInstantQueue(clock: Pick<Clock, 'realDelayMs' | 'sleepUntil' | 'timeout'>): InstantQueue {
  const waitersByInstant = new Map<number, Waiter[]>();

  async function sleep(instantMs: number, signal: AbortSignal): Promise<void> {
    const late = clock.timeout(Math.ceil(clock.realDelayMs(instantMs)) + RECHECK_AFTER_MS);
    try {
      await clock.sleepUntil(instantMs, AbortSignal.any([signal, late]));
    } catch (error) {
      if (!late.aborted) throw error;
    }
  }

  function takeWaiters(instantMs: number): Waiter[] {
    const waiters = waitersByInstant.get(instantMs) ?? [];
    waitersByInstant.delete(instantMs);
    return waiters.toSorted((a, b) => a.order - b.order);
  }

  return {
    waitUntil(instantMs, signal, order = 0) {
      const isFirst = !waitersByInstant.has(instantMs);
      const waiters = waitersByInstant.get(instantMs) ?? [];
      waitersByInstant.set(instantMs, waiters);
      const reached = new Promise<void>((resolve, reject) => waiters.push({ order, resolve, reject }));
      if (isFirst) {
        void sleep(instantMs, signal).then(
          () => {
            for (const waiter of takeWaiters(instantMs)) waiter.resolve();
          },
          (reason) => {
            for (const waiter of takeWaiters(instantMs)) waiter.reject(reason);
          },
        );
      }
      return reached;
    },
  };
}
