/**
 * The main loop of ebb. One reconcile makes one project as its policies want it:
 *
 * 1. lock the project, so that no other ebb writes to it
 * 2. read its state from the control API, and its records from the store
 * 3. confirm pending writes: those whose answer an earlier daemon never got
 * 4. decide and plan for each compute (pure functions of `src/domain`, by way of `evaluateProject`)
 * 5. apply: one write after the other, each stored before it is sent (`applyAction`)
 * 6. schedule what comes next: the end of operations, the next boundary, what waits
 *
 * Three callers: reconcile jobs ({@link createReconcile}) run all of it. Boundaries (boundaries/crossings.ts) lock and read before
 * the instant, and run {@link reconcileLocked} at it. `ebb apply` (operator/apply-plan.ts) goes through the same steps with the same
 * parts for a plan that a person has agreed to, and schedules nothing.
 */
import { step } from '../../common/errors.ts';
import type { Compute } from '../../domain/compute/compute.ts';
import type { EvaluatedCompute } from '../../domain/evaluate/evaluate.ts';
import { isReverted } from '../../domain/evaluate/evaluate.ts';
import { withTrials } from '../../domain/evaluate/trials.ts';
import { withWanted } from '../../domain/evaluate/wanted-since.ts';
import { withoutInstantsAhead } from '../../domain/overrides/instants-ahead.ts';
import { forgetRestored } from '../../domain/overrides/restore.ts';
import { detectManualChanges, withAgreed } from '../../domain/plan/manual-changes.ts';
import { inOrderOfWriting } from '../../domain/plan/plan.ts';
import type { ComputeRecord } from '../../domain/records/compute-record.ts';
import { firstRecord } from '../../domain/records/compute-record.ts';
import { forgetOvercome } from '../../domain/records/failures.ts';
import type { Clock } from '../../ports/clock.ts';
import type { JobHandler, JobQueue } from '../../ports/job-queue.ts';
import type { Lease, Store } from '../../ports/store.ts';
import type { Telemetry } from '../../ports/telemetry.ts';
import { type ApplyDeps, applyAction, reportDegraded } from '../apply/apply.ts';
import { type AsleepDeps, mayStillBeMade } from '../apply/asleep.ts';
import { isBranchAsDecided } from '../apply/branch-as-decided.ts';
import type { DueWrite } from '../apply/due-writes.ts';
import { type EvaluateProjectDeps, evaluateProject } from '../evaluate/evaluate.ts';
import { FRESH_MS, type FreshProjectDeps, freshProject } from '../fleet/cached-projects.ts';
import type { CachedProject, Fleet } from '../fleet/fleet.ts';
import { settleAbsent, withoutAbsence } from '../fleet/forget-project.ts';
import { knownRecord, type LockedAndRead, notBelievedBefore } from '../fleet/known-records.ts';
import { isCorrected } from '../group/stored-times.ts';
import {
  type LockDeps,
  type LockedProject,
  lockProject,
  READ_DEADLINE_MS,
  READ_RETRY_MS,
} from '../leases/locked-project.ts';
import type { Slots } from '../operations/restart-slots.ts';
import type { Overrides } from '../overrides.ts';
import { requestFollowing, requestReconcile, type ScheduleDeps, scheduleBoundaries, wakeAt } from '../triggers.ts';
import { confirmPendingWrites, type PendingWriteDeps } from './pending-writes.ts';
import { reportManualChanges } from './report-manual-changes.ts';

/** How long to wait for whoever holds the project's lease, in milliseconds. */
const LEASE_RETRY_MS = 500;

/** A daemon whose clock is behind the one that crossed a boundary waits for its own, at most so long. */
const MOST_CLOCK_SKEW_MS = 2_000;

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
}

interface Occasion {
  /** A stop ends the reconcile with an error, so that the trigger is left to the next daemon. */
  signal: AbortSignal;
  /** The boundary that was the reason, if one was. */
  boundaryMs: number | undefined;
  /** Where writes are due now: those of the reconcile are one of them. */
  due?: DueWrite;
}

/**
 * Handles reconcile jobs. A job has one attempt and never delays itself (a job that delays itself loses triggers); what waits asks
 * to be woken.
 */
export function createReconcile(deps: ReconcileDeps): JobHandler {
  return async ({ data: { projectId, instantMs } }, signal) => {
    if (projectId === undefined) return { kind: 'done' };
    await waitForOwnClock(deps, instantMs, signal);
    await step(`project ${projectId}`, () => reconcile(deps, projectId, { signal, boundaryMs: instantMs }));
    return { kind: 'done' };
  };
}

async function waitForOwnClock(
  { clock }: Pick<ReconcileDeps, 'clock'>,
  instantMs: number | undefined,
  signal: AbortSignal,
): Promise<void> {
  const nowMs = clock.now();
  if (instantMs === undefined || instantMs <= nowMs || instantMs - nowMs > MOST_CLOCK_SKEW_MS) return;
  await clock.sleepUntil(instantMs, signal);
}

async function reconcile(deps: ReconcileDeps, projectId: string, occasion: Occasion): Promise<void> {
  const locked = await step('locking it', () => lockProject(deps, projectId));
  if (!locked) {
    await wakeAt(deps, projectId, deps.clock.now() + LEASE_RETRY_MS);
    return;
  }
  try {
    const cachedProject = await step('reading its state', () => readState(deps, locked, projectId, occasion.signal));
    if (cachedProject) await reconcileLocked(deps, { ...locked, cachedProject }, occasion);
  } finally {
    await deps.store.releaseLease(locked.lease);
  }
}

/** Undefined if it can't be had now: then it is asked to be woken again, unless the project is gone. */
async function readState(
  deps: ReconcileDeps,
  locked: LockedProject,
  projectId: string,
  signal: AbortSignal,
): Promise<CachedProject | undefined> {
  const { fleet, clock } = deps;
  const begunMs = clock.monotonicMs();
  const notBeforeMs = notBelievedBefore(deps, locked, projectId);
  const cachedProject = await freshProject(deps, projectId, { notBeforeMs, signal, deadlineMs: READ_DEADLINE_MS });
  signal.throwIfAborted();
  // What a list that is older than this reconcile does not have may be in the next.
  const mayExist = fleet.listed(projectId) !== undefined || fleet.listAskedAtMonotonicMs < begunMs;
  if (!cachedProject && mayExist) await wakeAt(deps, projectId, clock.now() + READ_RETRY_MS);
  return cachedProject;
}

/** Steps 3 to 6, for a project that is locked and read: by one set of rules to the end, also where a reload replaces them meanwhile. */
export async function reconcileLocked(
  deps: ReconcileDeps,
  { lease, records: stored, cachedProject }: LockedAndRead,
  occasion: Occasion,
): Promise<void> {
  const { projectId } = cachedProject.project;
  const { current } = deps.rules;
  const once: ReconcileDeps = { ...deps, rules: { current } };
  await step('reading holds and freezes', () => once.overrides.refresh(once.store, once.clock.now()));
  const records = await step('confirming pending writes', () =>
    currentRecords(once, lease, cachedProject, stored, occasion.signal),
  );
  const boundaries = crossedBoundaries(once, cachedProject.computes, occasion.boundaryMs);
  const evaluated = evaluateProject(once, cachedProject.computes, records);
  for (const evaluatedCompute of evaluated) reportManualChanges(once, stored, evaluatedCompute);
  const evaluatedComputes = await step('storing what is wanted', () => recordWanted(once, lease, evaluated));
  for (const evaluatedCompute of evaluatedComputes) once.fleet.putEvaluated(evaluatedCompute);
  const isReplaced = () => deps.rules.current !== current;
  await applyInOrder(once, lease, cachedProject, evaluatedComputes, { ...occasion, boundaries, isReplaced });
  await step('scheduling what comes next', () => scheduleNext(once, projectId));
}

interface ApplyOccasion extends Occasion {
  /** By compute, the boundary that made it due. */
  boundaries: ReadonlyMap<string, number>;
  /** True once a reload has replaced the rules. */
  isReplaced(): boolean;
}

/** Raises first, then by priority. Ends early where what was decided by is no longer so, and asks for another reconcile. */
async function applyInOrder(
  deps: ReconcileDeps,
  lease: Lease,
  cachedProject: CachedProject,
  evaluatedComputes: readonly EvaluatedCompute[],
  { signal, due, boundaries, isReplaced }: ApplyOccasion,
): Promise<void> {
  const { projectId } = cachedProject.project;
  const toWrite = inOrderOfWriting(evaluatedComputes);
  for (const evaluatedCompute of toWrite) {
    const { computeId } = evaluatedCompute.compute;
    signal.throwIfAborted();
    if (deps.fleet.ageMs(projectId) > FRESH_MS || isReplaced()) {
      await requestReconcile(deps, projectId);
      break;
    }
    if (!(await isStillSo(deps, cachedProject, evaluatedCompute, signal))) break;
    // Until the last is answered the project keeps its turn: a raise that comes second must not wait for everybody's lowerings.
    const ofLast = evaluatedCompute === toWrite.at(-1) ? due : undefined;
    const written = await step(`applying the change of ${computeId}`, () =>
      applyAction(deps, lease, evaluatedCompute, { boundaryMs: boundaries.get(computeId), due: ofLast }),
    );
    if (written.lookAgainMs !== undefined) await wakeAt(deps, projectId, deps.clock.now() + written.lookAgainMs);
    if (!written.goOn) break;
  }
}

/** True if what was decided by still is so: the branch of the compute, and that it sleeps where that matters. */
async function isStillSo(
  deps: ReconcileDeps,
  cachedProject: CachedProject,
  evaluatedCompute: EvaluatedCompute,
  signal: AbortSignal,
) {
  if (!(await isBranchAsDecided(deps, cachedProject, evaluatedCompute, signal))) return false;
  return mayStillBeMade(deps, evaluatedCompute, signal);
}

/** By compute, the boundary that was crossed since the last reconcile: what a change now is late by. */
function crossedBoundaries(
  { fleet, clock }: ReconcileDeps,
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

/** Records as the store has them, with those of newly discovered computes, pending writes confirmed, and those absent for long forgotten. */
async function currentRecords(
  deps: ReconcileDeps,
  lease: Lease,
  cachedProject: CachedProject,
  stored: ReadonlyMap<string, ComputeRecord>,
  signal: AbortSignal,
): Promise<Map<string, ComputeRecord>> {
  const { store, mode, overrides } = deps;
  const { policies, manualChanges } = deps.rules.current;
  const nowMs = deps.clock.now();
  const { projectId } = cachedProject.project;
  const records = new Map<string, ComputeRecord>();
  const broken = await store.brokenRecords();
  for (const compute of cachedProject.computes) {
    // Without its record nobody knows what it had before ebb, nor what is under way.
    if (broken.has(compute.computeId)) continue;
    // A store that has lost it must not make ebb take for the baseline what it has applied itself.
    const known = knownRecord(deps, stored, compute.computeId) ?? firstRecord(compute, nowMs);
    // What this daemon remembers itself may be of a clock that was ahead and has been set right.
    const before = withoutAbsence(withoutInstantsAhead(known, nowMs).record);
    const options = { signal, deadlineMs: READ_DEADLINE_MS };
    const answered = await confirmPendingWrites(deps, before, compute, options);
    const settled = forgetRestored(forgetOvercome(answered, compute), compute, nowMs);
    const enforced = withEnforcedSince(settled, mode, nowMs);
    const looked = mode === 'observe' ? enforced : withTrials(policies, compute, enforced, nowMs);
    const situation = { policies, compute, record: looked, nowMs, holds: overrides.holds, manualChanges };
    const after = detectManualChanges(looked, compute, nowMs, (group) => isReverted(situation, group));
    const inStore = stored.get(compute.computeId);
    const isNews = after !== inStore || isCorrected(inStore);
    if (isNews && !(await store.putRecord(projectId, compute.computeId, after, lease))) {
      throw new Error(`the lease on project ${projectId} was lost while it was reconciled`);
    }
    reportDegraded(deps, compute, before, after);
    records.set(compute.computeId, after);
  }
  await settleAbsent(deps, lease, cachedProject, stored);
  return records;
}

/**
 * Where the compute has what policies want by now, it is ebb's own from then on, whoever has set it; and what is wanted is
 * remembered. What is about to be written is stored with its intent.
 */
async function recordWanted(
  deps: ReconcileDeps,
  lease: Lease,
  evaluatedComputes: EvaluatedCompute[],
): Promise<EvaluatedCompute[]> {
  if (deps.mode === 'observe') return evaluatedComputes;
  const { overrides } = deps;
  const { policies } = deps.rules.current;
  const remembered: EvaluatedCompute[] = [];
  for (const evaluatedCompute of evaluatedComputes) {
    const { compute, decision, plan } = evaluatedCompute;
    const { baseline, trials } = evaluatedCompute.record;
    const agreed = withAgreed(evaluatedCompute.record, compute, decision);
    const record = withWanted({
      policies,
      compute,
      baseline,
      trials,
      holds: overrides.holds,
      decision,
      record: agreed,
    });
    if (record !== evaluatedCompute.record && plan.verdict !== 'act') {
      await deps.store.putRecord(compute.projectId, compute.computeId, record, lease);
    }
    remembered.push(record === evaluatedCompute.record ? evaluatedCompute : { ...evaluatedCompute, record });
  }
  return remembered;
}

function withEnforcedSince(record: ComputeRecord, mode: ReconcileDeps['mode'], nowMs: number): ComputeRecord {
  if (mode === 'observe' || record.enforcedSinceMs !== undefined) return record;
  return { ...record, enforcedSinceMs: nowMs };
}

async function scheduleNext(deps: ReconcileDeps, projectId: string): Promise<void> {
  const nowMs = deps.clock.now();
  const evaluatedComputes = deps.fleet.evaluatedOf(projectId);
  if (evaluatedComputes.some(({ record }) => record.openOperations.length > 0)) await requestFollowing(deps, projectId);
  const ahead = evaluatedComputes.flatMap(({ plan }) => plan.untilMs ?? []).filter((ms) => ms > nowMs);
  if (ahead.length > 0) await wakeAt(deps, projectId, Math.min(...ahead));
  await scheduleBoundaries(deps, evaluatedComputes);
}
