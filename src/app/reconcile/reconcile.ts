/**
 * The main loop of ebb. One reconcile makes one project as its policies want it:
 *
 * 1. lock the project, so that no other ebb writes to it, and read its records from the store
 * 2. see whether what was read of it from the control API is still to be believed
 * 3. confirm pending writes: those whose answer an earlier daemon never got
 * 4. decide and plan for each compute (pure functions of `src/domain`, by way of `evaluateProject`)
 * 5. apply: one write after the other, each stored before it is sent (`applyAction`)
 * 6. schedule what comes next: the end of operations, the next boundary, what waits
 *
 * Three callers: reconcile jobs ({@link createReconcile}). Boundaries (boundaries/boundary-reconciles.ts), which read before the instant and
 * begin with a permit of the rate budget at it. `ebb apply` (operator/apply-plan.ts) goes through the same steps with the same
 * parts for a plan that a person has agreed to, and schedules nothing.
 */

import { step, thenCleanUp } from '../../common/errors.ts';
import type { Compute } from '../../domain/compute/compute.ts';
import type { EvaluatedCompute } from '../../domain/evaluate/evaluate.ts';
import { inWriteOrder } from '../../domain/plan/plan.ts';
import type { Priority } from '../../domain/rate-budget/grant.ts';
import { RECOVERY } from '../../domain/records/recovery-times.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Permit } from '../../ports/control-api.ts';
import type { JobHandler, JobQueue } from '../../ports/job-queue.ts';
import type { DecidedBy, Lease, Store } from '../../ports/store.ts';
import type { Telemetry } from '../../ports/telemetry.ts';
import { type ApplyDeps, applyAction } from '../apply/apply.ts';
import type { DueWrite, DueWrites } from '../apply/due-writes.ts';
import { type AsleepDeps, isBranchAsDecided, isStillAsleep, needsReading } from '../apply/rechecks.ts';
import { type EvaluateProjectDeps, evaluateProject } from '../evaluate-project/evaluate.ts';
import { type FreshProjectDeps, findProject, readInTurn } from '../fleet/cached-projects.ts';
import type { CachedProject, Fleet } from '../fleet/fleet.ts';
import type { LockedAndRead } from '../fleet/known-records.ts';
import { MOST_APART_MS } from '../group/clock-skew.ts';
import { type LockDeps, lockProject, READ_RETRY_MS } from '../leases/locked-project.ts';
import type { Slots } from '../operations/restart-slots.ts';
import type { KnownOverrides, Overrides } from '../overrides.ts';
import { requestFollowing, requestReconcile, type ScheduleDeps, scheduleBoundaries, wakeAt } from '../triggers.ts';
import {
  getPermits,
  type Missing,
  missingPermits,
  type Permits,
  type ReadBaseline,
  readBaselineOf,
  usableCachedProject,
} from './missing.ts';
import type { PendingWriteDeps } from './pending-writes.ts';
import { currentRecords, recordWanted, reportManualChanges } from './records.ts';

/** No generation has this number. */
const NO_GENERATION = -1;

/** Decisions of a project under one lease while the basis changes each time before the write; then a new reconcile continues. */
const MOST_DECISIONS = 3;

/** Delay before the project's lease is tried again, in milliseconds. */
const LEASE_RETRY_MS = 500;

export interface ReconcileDeps
  extends LockDeps,
    FreshProjectDeps,
    PendingWriteDeps,
    EvaluateProjectDeps,
    ApplyDeps,
    AsleepDeps,
    ScheduleDeps {
  queue: JobQueue;
  clock: Clock;
  store: Store;
  fleet: Fleet;
  telemetry: Telemetry;
  overrides: Overrides;
  slots: Slots;
  /** Number of the policy set of `rules`; undefined while nothing may be written by it. */
  generation(): number | undefined;
}

/** The same for one decision: by one set of rules, and by the holds and freezes of one moment, to the end. */
interface DecisionDeps extends Omit<ReconcileDeps, 'overrides'> {
  overrides: KnownOverrides;
  decidedBy: DecidedBy;
}

interface Occasion {
  /** A stop ends the reconcile with an error, so that the trigger is left to the next daemon. */
  signal: AbortSignal;
  /** The boundary that was the reason, if one was. */
  boundaryMs: number | undefined;
  /** Due writes, which include those of this reconcile. */
  dueWrites?: DueWrites;
  /** The priority of its readings; `read` if absent. */
  priority?: Priority;
  /** Leave to send that was waited for ahead. */
  permits?: Permits | undefined;
  /** Many share the same boundary. */
  isCrowded?: boolean;
  /** The cached project must be from after this. */
  readBaseline?: ReadBaseline | undefined;
}

/** The same for one pass. */
interface PassOccasion extends Occasion {
  due?: DueWrite | undefined;
}

/**
 * Handles reconcile jobs. A job has one attempt and never delays itself (a job that delays itself loses triggers); waiting work asks for a
 * wake.
 */
export function createReconcile(deps: ReconcileDeps): JobHandler {
  return async ({ data: { projectId, instantMs, notBeforeMs = instantMs } }, signal) => {
    if (projectId === undefined) return { kind: 'done' };
    await waitForOwnClock(deps, notBeforeMs, signal);
    await step(`project ${projectId}`, () => reconcile(deps, projectId, { signal, boundaryMs: instantMs }));
    return { kind: 'done' };
  };
}

/** A daemon whose clock is behind the one that reached an instant waits for its own. */
async function waitForOwnClock(
  { clock }: Pick<ReconcileDeps, 'clock'>,
  instantMs: number | undefined,
  signal: AbortSignal,
): Promise<void> {
  const nowMs = clock.now();
  if (instantMs === undefined || instantMs <= nowMs || instantMs - nowMs > MOST_APART_MS) return;
  await clock.sleepUntil(instantMs, signal);
}

/**
 * Steps 1 to 6, repeated as needed: the lease is not held while a pass waits for the rate budget. A pass that lacks a reading, or a permit
 * to send, ends and gives the lease back; the next one begins with it.
 */
export async function reconcile(deps: ReconcileDeps, projectId: string, occasion: Occasion): Promise<void> {
  const permits: Permits = { ...occasion.permits };
  let { readBaseline } = occasion;
  try {
    for (;;) {
      occasion.signal.throwIfAborted();
      const missing = await runPass(deps, projectId, { ...occasion, permits, readBaseline });
      if (missing === undefined) return;
      if (missing.kind === 'permits') Object.assign(permits, await getPermits(deps, missing, occasion.signal));
      else if (await readUnlocked(deps, projectId, missing.priority, occasion.signal))
        readBaseline = missing.readBaseline;
      else return;
    }
  } finally {
    for (const permit of Object.values(permits)) permit?.giveBack();
  }
}

/** One pass, in its turn among the writes that are due; the turn is given back, whatever becomes of the pass. */
async function runPass(deps: ReconcileDeps, projectId: string, occasion: Occasion): Promise<Missing | undefined> {
  const due = occasion.permits?.updateCompute && (await occasion.dueWrites?.begin());
  try {
    return await lockAndReconcile(deps, projectId, { ...occasion, due });
  } finally {
    due?.end();
  }
}

async function lockAndReconcile(
  deps: ReconcileDeps,
  projectId: string,
  occasion: PassOccasion,
): Promise<Missing | undefined> {
  const locked = await step('locking it', () => lockProject(deps, projectId));
  if (!locked) {
    await wakeAt(deps, projectId, deps.clock.now() + LEASE_RETRY_MS);
    return undefined;
  }
  const work = async (): Promise<Missing | undefined> => {
    const cachedProject = usableCachedProject(deps, locked, projectId, occasion.readBaseline);
    if (cachedProject) return reconcileLocked(deps, { ...locked, cachedProject }, occasion);
    return {
      kind: 'reading',
      priority: occasion.priority ?? 'read',
      readBaseline: readBaselineOf(deps, locked, projectId),
    };
  };
  return thenCleanUp(work, () => deps.store.releaseLease(locked.lease));
}

/** Reads the project in its turn; false if it can't be read now: then it asks for a wake, unless it is gone. */
async function readUnlocked(
  deps: ReconcileDeps,
  projectId: string,
  priority: Priority,
  signal: AbortSignal,
): Promise<boolean> {
  const { fleet, clock } = deps;
  const begunMs = clock.monotonicMs();
  const project = await step('reading its state', () => findProject(deps, projectId, { signal }));
  const options = { signal, priority, deadlineMs: RECOVERY.readMs };
  const cachedProject = project && (await step('reading its state', () => readInTurn(deps, project, options)));
  signal.throwIfAborted();
  // A project that is missing in a list older than this reconcile may be in the next.
  const mayExist = fleet.listed(projectId) !== undefined || fleet.listAskedAtMonotonicMs < begunMs;
  if (!cachedProject && mayExist) await wakeAt(deps, projectId, clock.now() + READ_RETRY_MS);
  return cachedProject !== undefined;
}

/**
 * Steps 3 to 6, for a project that is locked and read. Where a hold, a freeze or the policy set changes between the decision and the
 * write, nothing is sent and it is decided again, under the same lease and without another request to the control API.
 */
async function reconcileLocked(
  deps: ReconcileDeps,
  locked: LockedAndRead,
  occasion: PassOccasion,
): Promise<Missing | undefined> {
  const { projectId } = locked.cachedProject.project;
  let { records } = locked;
  for (let decisions = 1; decisions <= MOST_DECISIONS; decisions += 1) {
    const outcome = await decideAndApply(deps, { ...locked, records }, occasion);
    if (outcome !== 'outdated') return outcome;
    records = await step('reading its records', () => deps.store.records(projectId));
  }
  // The basis of decisions keeps changing: other projects get their turn first.
  await wakeAt(deps, projectId, deps.clock.now() + LEASE_RETRY_MS);
  return undefined;
}

async function decideAndApply(
  deps: ReconcileDeps,
  { lease, records: stored, cachedProject }: LockedAndRead,
  occasion: PassOccasion,
): Promise<Missing | 'outdated' | undefined> {
  const { projectId } = cachedProject.project;
  await step('reading holds and freezes', () => deps.overrides.refresh(deps.store, deps.clock.now()));
  const { current } = deps.rules;
  const overrides = deps.overrides.snapshot();
  // A daemon that has not registered a generation may not write by its decisions.
  const decidedBy = { overrides: overrides.revision, generation: deps.generation() ?? NO_GENERATION };
  const once: DecisionDeps = { ...deps, rules: { current }, overrides, decidedBy };
  const records = await step('confirming pending writes', () =>
    currentRecords(once, lease, cachedProject, stored, occasion.signal),
  );
  const boundaries = crossedBoundaries(once, cachedProject.computes, occasion.boundaryMs);
  const evaluated = evaluateProject(once, cachedProject.computes, records);
  for (const evaluatedCompute of evaluated) reportManualChanges(once, stored, evaluatedCompute);
  const evaluatedComputes = await step('storing what is wanted', () => recordWanted(once, lease, evaluated));
  for (const evaluatedCompute of evaluatedComputes) once.fleet.putEvaluated(evaluatedCompute);
  const isReplaced = () => deps.rules.current !== current;
  const outcome = await applyNext(once, lease, cachedProject, evaluatedComputes, {
    ...{ ...occasion, boundaries, isReplaced },
  });
  if (outcome === undefined) await step('scheduling what comes next', () => scheduleNext(once, projectId));
  return outcome;
}

interface ApplyOccasion extends PassOccasion {
  /** By compute, the boundary that made it due. */
  boundaries: ReadonlyMap<string, number>;
  /** True once a reload has replaced the rules. */
  isReplaced(): boolean;
}

/**
 * Applies the most urgent change of the project: by priority, then raises first. Each needs a permit of the rate budget, so the others are
 * left to the next pass.
 */
async function applyNext(
  deps: DecisionDeps,
  lease: Lease,
  cachedProject: CachedProject,
  evaluatedComputes: readonly EvaluatedCompute[],
  { signal, due, boundaries, isReplaced, isCrowded = false, permits = {} }: ApplyOccasion,
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
    if (!(await isStillAsRead(deps, cachedProject, evaluatedCompute, reading))) return undefined;
    const written = await step(`applying the change of ${computeId}`, () =>
      applyAction(deps, lease, evaluatedCompute, { decidedBy, boundaryMs: boundaries.get(computeId), due, permits }),
    );
    if (written.isOutdated) return 'outdated';
    if (written.retryAfterMs !== undefined) await wakeAt(deps, projectId, deps.clock.now() + written.retryAfterMs);
    if (!written.goOn) return undefined;
  }
  return undefined;
}

/** True if the compute is still as it was decided about; otherwise another reconcile has been requested. */
async function isStillAsRead(
  deps: DecisionDeps,
  cachedProject: CachedProject,
  evaluatedCompute: EvaluatedCompute,
  { signal, readsFirst, permit }: { signal: AbortSignal; readsFirst: boolean; permit: Permit | undefined },
): Promise<boolean> {
  const { projectId } = cachedProject.project;
  if (!deps.fleet.isFresh(projectId)) {
    await requestReconcile(deps, projectId);
    return false;
  }
  if (!(await isBranchAsDecided(deps, cachedProject, evaluatedCompute, signal))) return false;
  return !readsFirst || isStillAsleep(deps, evaluatedCompute, { signal, permit });
}

/** The boundary that has passed since the last reconcile, by compute: a change now is late by that much. */
function crossedBoundaries(
  { fleet, clock }: Pick<ReconcileDeps, 'fleet' | 'clock'>,
  computes: readonly Compute[],
  boundaryMs: number | undefined,
): Map<string, number> {
  const crossed = new Map<string, number>();
  for (const { computeId } of computes) {
    const expected = fleet.evaluatedCompute(computeId)?.nextBoundaryMs;
    const instantMs = expected !== undefined && expected <= clock.now() ? expected : boundaryMs;
    if (instantMs !== undefined) crossed.set(computeId, instantMs);
  }
  return crossed;
}

async function scheduleNext(
  deps: ScheduleDeps & Pick<ReconcileDeps, 'fleet' | 'clock'>,
  projectId: string,
): Promise<void> {
  const nowMs = deps.clock.now();
  const evaluatedComputes = deps.fleet.evaluatedOf(projectId);
  if (evaluatedComputes.some(({ record }) => record.openOperations.length > 0)) await requestFollowing(deps, projectId);
  const ahead = evaluatedComputes.flatMap(({ plan }) => plan.untilMs ?? []).filter((ms) => ms > nowMs);
  if (ahead.length > 0) await wakeAt(deps, projectId, Math.min(...ahead));
  await scheduleBoundaries(deps, evaluatedComputes);
}
