/**
 * The main loop of ebb. A reconcile brings one project to what its policies want, in passes. Each pass does these steps:
 *
 * 1. lock the project, so that no other ebb writes to it, and read its records from the store
 * 2. check that the cached reading of the project is recent; if not, release the lease, read without it, and start the next pass
 * 3. confirm pending writes, whose answers an earlier daemon never got
 * 4. decide and plan for each compute (`evaluateProject`, which calls the pure functions of `src/domain`)
 * 5. apply the writes one after the other; each is stored before it is sent (`applyAction`)
 * 6. schedule the next triggers: the end of operations, the next boundary, the end of a blocked change
 *
 * Two callers run reconciles: reconcile jobs ({@link createReconcile}) and boundary jobs (boundaries/boundary-reconciles.ts), which read the
 * project before the instant and begin with a permit of the rate budget. `ebb apply` (operator/apply-plan.ts) has its own loop: it applies
 * a plan that a person has confirmed, also with `applyAction`, and schedules nothing.
 */

import { step, thenCleanUp } from '../../common/errors.ts';
import type { Compute } from '../../domain/compute/compute.ts';
import type { EvaluatedCompute } from '../../domain/evaluate/evaluate.ts';
import { inWriteOrder } from '../../domain/plan/plan.ts';
import type { Priority } from '../../domain/rate-budget/grant.ts';
import { RECOVERY } from '../../domain/records/recovery-times.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Permit } from '../../ports/control-api.ts';
import type { JobHandler } from '../../ports/job-queue.ts';
import type { DecidedBy, Lease, Store } from '../../ports/store.ts';
import { type ApplyDeps, applyAction } from '../apply/apply.ts';
import type { DueWrite, DueWrites } from '../apply/due-writes.ts';
import { isBranchAsDecided, isStillAsleep, needsReading } from '../apply/rechecks.ts';
import { evaluateProject } from '../evaluate-project/evaluate.ts';
import { type FreshProjectDeps, findProject, readInTurn } from '../fleet/cached-projects.ts';
import { type CachedProject, FRESH_MS } from '../fleet/fleet.ts';
import type { SharedReadings } from '../fleet/stored-readings.ts';
import { MAX_CLOCK_SKEW_MS } from '../group/clock-skew.ts';
import type { StoreWatch } from '../group/store-loss.ts';
import { type LeaseDeps, type LockedProject, lockProject, READ_RETRY_MS } from '../leases/locked-project.ts';
import type { Slots } from '../operations/restart-slots.ts';
import type { Overrides, OverridesSnapshot } from '../overrides.ts';
import {
  requestFollowing,
  requestReconcile,
  type ScheduleDeps,
  scheduleBoundaries,
  tryAgain,
  wakeAt,
} from '../triggers.ts';
import {
  expectedPermits,
  getPermits,
  type MayDecideDeps,
  type Missing,
  type MissingReading,
  mayDecide,
  missingPermits,
  type Permits,
  type RequestedReading,
  requestReading,
  usableCachedProject,
  wasChangedByOthers,
} from './missing.ts';
import { currentRecords, type RecordsDeps, recordWanted, reportManualChanges } from './records.ts';
import { createSlotWaits } from './waits-for-slot.ts';

/** No policy set has this generation number: the store refuses pending writes that were decided by it. */
const NO_GENERATION = -1;

/** A project is decided at most this often under one lease, while holds, freezes or rules keep changing before the write. */
const MAX_DECISIONS = 3;

/** Delay before another attempt to get a project's lease, in milliseconds. */
const LEASE_RETRY_MS = 500;

/** If another job or daemon has changed a project at the same boundary, it is evaluated again after this delay, in milliseconds. */
const AFTER_OTHERS_MS = 30_000;

export interface ReconcileDeps
  extends LeaseDeps,
    FreshProjectDeps,
    ApplyDeps,
    RecordsDeps,
    ScheduleDeps,
    MayDecideDeps {
  clock: Clock;
  store: Store;
  overrides: Overrides;
  slots: Slots;
  storeWatch: StoreWatch;
  /** Absent: no other daemon has the store. */
  sharedReadings?: Pick<SharedReadings, 'take'>;
}

/** Dependencies of one decision, with rules, holds and freezes fixed. */
interface DecisionDeps extends Omit<ReconcileDeps, 'overrides'> {
  overrides: OverridesSnapshot;
  decidedBy: DecidedBy;
}

interface ReconcileOptions {
  /** Aborted when the daemon stops. Then the reconcile rejects, so that the next daemon gets the trigger. */
  signal: AbortSignal;
  /** The boundary that has triggered the reconcile, milliseconds since the epoch; undefined without one. */
  boundaryMs: number | undefined;
  /** The queue of due writes, in which this reconcile takes its turn; absent outside boundary jobs. */
  dueWrites?: DueWrites;
  /** The priority of reading the project; `read` if absent. */
  priority?: Priority;
  /** Permits of the rate budget that were obtained in advance. */
  permits?: Permits | undefined;
  /** True if many projects share the boundary. */
  isCrowded?: boolean;
  /** The reading that was made for an earlier pass. */
  requestedReading?: RequestedReading | undefined;
}

interface LockedReading extends LockedProject {
  cachedProject: CachedProject;
}

interface PassOptions extends ReconcileOptions {
  dueWrite?: DueWrite | undefined;
  /** The boundaries that made changes due, by compute id, milliseconds since the epoch. Later passes need them, as each evaluation sets a new one. */
  crossed: Map<string, number>;
}

/** Handles reconcile jobs. A job is never delayed: a trigger that arrives for a project with a delayed job would be lost. */
export function createReconcile(deps: ReconcileDeps): JobHandler {
  const onlyWaitsForSlots = createSlotWaits(deps);
  return async ({ data: { projectId, instantMs, notBeforeMs = instantMs } }, signal) => {
    if (projectId === undefined) return { kind: 'done' };
    await waitForOwnClock(deps, notBeforeMs, signal);
    const waiting = deps.fleet.waitingAtBoundary.get(projectId);
    if (waiting !== undefined && (await isLeftToBoundary(deps, projectId, waiting))) return { kind: 'done' };
    if (await onlyWaitsForSlots(projectId)) return { kind: 'done' };
    await step(`project ${projectId}`, () => reconcile(deps, projectId, { signal, boundaryMs: instantMs }));
    return { kind: 'done' };
  };
}

/**
 * Returns true if the project can be left to the boundary reconcile that waits for it, because that one has the priority of a raise or the project
 * needs no raise. After a start at a boundary, each project has both kinds of job, and a second reconcile would only use up requests.
 */
async function isLeftToBoundary(deps: ReconcileDeps, projectId: string, waiting: Priority): Promise<boolean> {
  const { fleet, overrides, store, clock } = deps;
  if (waiting === 'raise') return true;
  const cachedProject = fleet.cachedProject(projectId);
  if (!cachedProject) return false;
  await overrides.refresh(store, clock.now());
  const records = await store.records(projectId);
  const expected = expectedPermits({ ...deps, overrides: overrides.snapshot() }, cachedProject, records, false);
  return expected?.priority !== 'raise' && fleet.waitingAtBoundary.has(projectId);
}

/** Waits until this daemon's own clock shows the instant: the clock of the daemon that queued the job may be ahead. */
async function waitForOwnClock(
  { clock }: Pick<ReconcileDeps, 'clock'>,
  instantMs: number | undefined,
  signal: AbortSignal,
): Promise<void> {
  const nowMs = clock.now();
  if (instantMs === undefined || instantMs <= nowMs || instantMs - nowMs > MAX_CLOCK_SKEW_MS) return;
  await clock.sleepUntil(instantMs, signal);
}

/**
 * Runs passes until the project is reconciled. The lease is not held while the rate budget makes ebb wait: a pass that lacks a reading
 * or a permit ends, and the next pass starts when both are there.
 */
export async function reconcile(deps: ReconcileDeps, projectId: string, options: ReconcileOptions): Promise<void> {
  const permits: Permits = { ...options.permits };
  const isAnyUsed = () => Object.values(permits).some((permit) => permit?.isUsed());
  const crossed = new Map<string, number>();
  let { requestedReading } = options;
  // Another daemon's reading may show that nothing is to be done. At a boundary something usually is.
  let mayTakeShared = options.boundaryMs === undefined;
  try {
    for (;;) {
      options.signal.throwIfAborted();
      const missing = await runPass(deps, projectId, { ...options, permits, requestedReading, crossed });
      if (missing === undefined) return;
      if (missing.kind === 'permits') Object.assign(permits, await getPermits(deps, missing, options.signal));
      else if (!isAnyUsed() && wasChangedByOthers(missing, options))
        return wakeAt(deps, projectId, deps.clock.now() + AFTER_OTHERS_MS);
      else if (await readUnlocked(deps, projectId, missing, { signal: options.signal, mayTakeShared })) {
        requestedReading = missing.requestedReading;
        mayTakeShared = false;
      } else return;
    }
  } finally {
    for (const permit of Object.values(permits)) permit?.giveBack();
  }
}

/** Runs one pass. At a boundary, it takes its turn among the due writes, and always gives the turn back. */
async function runPass(deps: ReconcileDeps, projectId: string, options: PassOptions): Promise<Missing | undefined> {
  const dueWrite = options.permits?.updateCompute && (await options.dueWrites?.begin());
  try {
    return await lockAndReconcile(deps, projectId, { ...options, dueWrite });
  } finally {
    dueWrite?.end();
  }
}

async function lockAndReconcile(
  deps: ReconcileDeps,
  projectId: string,
  options: PassOptions,
): Promise<Missing | undefined> {
  // Checked before the lock, which would otherwise be taken in vain.
  if (!(await mayDecide(deps, projectId))) return undefined;
  const locked = await step('locking it', () => lockProject(deps, projectId));
  if (!locked) {
    await tryAgain(deps, projectId, LEASE_RETRY_MS);
    return undefined;
  }
  const { requestedReading, priority = 'read' } = options;
  const work = async (): Promise<Missing | undefined> => {
    const cachedProject = usableCachedProject(deps, locked, projectId, requestedReading);
    if (cachedProject) return reconcileLocked(deps, { ...locked, cachedProject }, options);
    return { kind: 'reading', priority, requestedReading: requestReading(deps, locked, projectId) };
  };
  return thenCleanUp(work, () => deps.store.releaseLease(locked.lease));
}

/** Reads the project without the lease. Returns false if it can't be read now, and schedules a retry unless the project is gone. */
async function readUnlocked(
  deps: ReconcileDeps,
  projectId: string,
  { priority, requestedReading: { records } }: MissingReading,
  { signal, mayTakeShared }: { signal: AbortSignal; mayTakeShared: boolean },
): Promise<boolean> {
  const { fleet } = deps;
  const begunMs = deps.clock.monotonicMs();
  const cachedProject = await step('reading its state', async () => {
    const project = await findProject(deps, projectId, { signal, records });
    if (mayTakeShared && project && (await deps.sharedReadings?.take(project, FRESH_MS)))
      return fleet.cachedProject(projectId);
    return project && readInTurn(deps, project, { signal, priority, deadlineMs: RECOVERY.readMs, records });
  });
  signal.throwIfAborted();
  // If the last list of projects is older than this reconcile, the next one may contain the project.
  const mayExist = fleet.listed(projectId) !== undefined || fleet.listAskedAtMonotonicMs < begunMs;
  if (!cachedProject && mayExist) await tryAgain(deps, projectId, READ_RETRY_MS);
  return cachedProject !== undefined;
}

/**
 * Does steps 3 to 6 for a locked project with a recent reading. If a hold, a freeze or the policy set changes between decision and write,
 * nothing is sent, and the project is decided again under the same lease, without another request to the control API.
 */
async function reconcileLocked(
  deps: ReconcileDeps,
  locked: LockedReading,
  options: PassOptions,
): Promise<Missing | undefined> {
  const { projectId } = locked.cachedProject.project;
  let { records } = locked;
  for (let decisions = 1; decisions <= MAX_DECISIONS; decisions += 1) {
    const outcome = await decideAndApply(deps, { ...locked, records }, options);
    if (outcome !== 'outdated') return outcome;
    records = await step('reading its records', () => deps.store.records(projectId));
  }
  // Holds, freezes or rules keep changing: other projects get their turn first.
  await tryAgain(deps, projectId, LEASE_RETRY_MS);
  return undefined;
}

async function decideAndApply(
  deps: ReconcileDeps,
  { lease, records: stored, cachedProject }: LockedReading,
  options: PassOptions,
): Promise<Missing | 'outdated' | undefined> {
  const { projectId } = cachedProject.project;
  await step('reading holds and freezes', () => deps.overrides.refresh(deps.store, deps.clock.now()));
  // Checked again, since the clock may have been set while the project was locked.
  if (!(await mayDecide(deps, projectId))) return undefined;
  const { current } = deps.rules;
  const overrides = deps.overrides.snapshot();
  // A daemon that has not registered its policy set as a generation may not write by it.
  const decidedBy = { overrides: overrides.revision, generation: deps.generation() ?? NO_GENERATION };
  const fixedDeps: DecisionDeps = { ...deps, rules: { current }, overrides, decidedBy };
  const records = await step('confirming pending writes', () =>
    currentRecords(fixedDeps, lease, cachedProject, stored, options.signal),
  );
  noteCrossed(fixedDeps, cachedProject.computes, options);
  const evaluated = evaluateProject(fixedDeps, cachedProject.computes, records);
  for (const evaluatedCompute of evaluated) reportManualChanges(fixedDeps, stored, evaluatedCompute);
  const evaluatedComputes = await step('storing what is wanted', () => recordWanted(fixedDeps, lease, evaluated));
  for (const evaluatedCompute of evaluatedComputes) fixedDeps.fleet.putEvaluated(evaluatedCompute);
  const mayWrite = cachedProject.isShared === undefined || mayWriteFrom(deps, cachedProject);
  if (!mayWrite && evaluatedComputes.some(({ plan }) => plan.verdict === 'act')) {
    const requestedReading = requestReading(deps, { records: stored }, projectId);
    return { kind: 'reading', priority: options.priority ?? 'read', requestedReading };
  }
  const isReplaced = () => deps.rules.current !== current;
  const applyOptions = { ...options, isReplaced };
  const outcome = await applyInOrder(fixedDeps, lease, cachedProject, evaluatedComputes, applyOptions);
  if (outcome !== undefined) return outcome;
  await step('scheduling what comes next', () => scheduleNext(fixedDeps, projectId));
  // The shown decisions are those of the replaced rules: without a reconcile they would stay until the next reading.
  if (isReplaced()) await requestReconcile(deps, projectId);
  return undefined;
}

interface ApplyOptions extends PassOptions {
  /** True once a reload has replaced the rules. */
  isReplaced(): boolean;
}

/**
 * Applies the changes of the project, the most urgent first: by priority, then raises. Each change needs a permit of the rate budget; where
 * one is missing, the pass ends and returns what it lacks.
 */
async function applyInOrder(
  deps: DecisionDeps,
  lease: Lease,
  cachedProject: CachedProject,
  evaluatedComputes: readonly EvaluatedCompute[],
  { signal, dueWrite, crossed, isReplaced, isCrowded = false, permits = {} }: ApplyOptions,
): Promise<Missing | 'outdated' | undefined> {
  const { projectId } = cachedProject.project;
  const { decidedBy } = deps;
  for (const evaluatedCompute of inWriteOrder(evaluatedComputes)) {
    const { computeId } = evaluatedCompute.compute;
    signal.throwIfAborted();
    const readsFirst = needsReading(deps, evaluatedCompute, isCrowded);
    const missing = missingPermits(evaluatedCompute, permits, readsFirst);
    if (missing) return missing;
    if (isReplaced()) return 'outdated';
    const reading = { signal, readsFirst, permit: permits.listComputes };
    if (!(await isStillAsDecided(deps, cachedProject, evaluatedCompute, reading))) return undefined;
    const applying = { decidedBy, boundaryMs: crossed.get(computeId), dueWrite, permits };
    const written = await step(`applying the change of ${computeId}`, () =>
      applyAction(deps, lease, evaluatedCompute, applying),
    );
    if (written.isOutdated) return 'outdated';
    if (written.retryAfterMs !== undefined) await tryAgain(deps, projectId, written.retryAfterMs);
    if (!written.mayContinue) return undefined;
  }
  return undefined;
}

/**
 * Returns true if the reading is fresh enough to write from. A reading of another process must also still be the cached one: otherwise, what a
 * list has confirmed may be another reading, which has replaced it.
 */
function mayWriteFrom(
  { fleet }: Pick<ReconcileDeps, 'fleet'>,
  { project, computes, isShared }: CachedProject,
): boolean {
  const isCached = fleet.cachedProject(project.projectId)?.computes === computes;
  return fleet.isFresh(project.projectId) && (isCached || isShared === undefined);
}

/** Returns true if the compute is still as the decision assumed; otherwise requests another reconcile. */
async function isStillAsDecided(
  deps: DecisionDeps,
  cachedProject: CachedProject,
  evaluatedCompute: EvaluatedCompute,
  { signal, readsFirst, permit }: { signal: AbortSignal; readsFirst: boolean; permit: Permit | undefined },
): Promise<boolean> {
  const { projectId } = cachedProject.project;
  if (!mayWriteFrom(deps, cachedProject)) {
    await requestReconcile(deps, projectId);
    return false;
  }
  if (!(await isBranchAsDecided(deps, cachedProject, evaluatedCompute, signal))) return false;
  return !readsFirst || isStillAsleep(deps, evaluatedCompute, { signal, permit });
}

/** Notes for each compute the boundary that has passed since its last evaluation, or else that of the job: lateness is measured from it. */
function noteCrossed(
  { fleet, clock }: Pick<ReconcileDeps, 'fleet' | 'clock'>,
  computes: readonly Compute[],
  { boundaryMs, crossed }: Pick<PassOptions, 'boundaryMs' | 'crossed'>,
): void {
  for (const { computeId } of computes) {
    const expected = fleet.ownEvaluation(computeId)?.nextBoundaryMs;
    const instantMs = expected !== undefined && expected <= clock.now() ? expected : boundaryMs;
    if (instantMs !== undefined) crossed.set(computeId, instantMs);
  }
}

async function scheduleNext(deps: DecisionDeps, projectId: string): Promise<void> {
  const nowMs = deps.clock.now();
  const evaluatedComputes = deps.fleet.ownEvaluations(projectId);
  if (evaluatedComputes.some(({ record }) => record.openOperations.length > 0)) await requestFollowing(deps, projectId);
  const ahead = evaluatedComputes.flatMap(({ plan }) => plan.untilMs ?? []).filter((ms) => ms > nowMs);
  if (ahead.length > 0) await wakeAt(deps, projectId, Math.min(...ahead));
  await scheduleBoundaries(deps, evaluatedComputes);
}
