import pLimit from 'p-limit';
import type { Compute } from '../domain/compute.ts';
import type { ComputeRecord } from '../domain/compute-record.ts';
import { forgetOvercome } from '../domain/failures.ts';
import { isReverted } from '../domain/judge.ts';
import { noticeManualChanges, withAgreed } from '../domain/manual-changes.ts';
import { firstRecord } from '../domain/records.ts';
import { forgetRestored } from '../domain/restore.ts';
import { withWanted } from '../domain/wanted-since.ts';
import type { JobHandler } from '../ports/job-queue.ts';
import type { Lease } from '../ports/store.ts';
import { applyAction, reportDegraded } from './apply.ts';
import { scheduleBoundaries } from './boundaries.ts';
import { concludeProject } from './conclude.ts';
import type { Context } from './context.ts';
import { createDueWrites, type DueWrite } from './due-writes.ts';
import type { Conclusion, Picture } from './fleet.ts';
import { FRESH_MS, freshPicture } from './pictures.ts';
import { settleUnanswered } from './settle-intents.ts';
import { holdsLongEnough, type TakenProject, takeProject } from './taken-project.ts';
import { requestFollowing, requestReconcile, wakeAt } from './triggers.ts';
import { compareRanks } from './write-order.ts';

/** How long to wait for whoever holds the project's lease, in milliseconds. */
const LEASE_RETRY_MS = 500;

/** When to look again at a project that could not be read, in milliseconds. */
const READ_RETRY_MS = 5_000;

/** Reading under a lease must end well before the lease does, in real milliseconds. */
const READ_DEADLINE_MS = 6_000;

/** A trigger of a boundary comes early, and to a daemon whose clock is behind even more so; more than this is no such trigger. */
const MOST_AHEAD_MS = 8_000;

/** Projects that are looked at and written to at a time; of those that wait for a boundary there may be many more. */
const LOOKS_AT_A_TIME = 32;

/**
 * Makes one project as it should be: reads what is, decides what should be, does the difference. It has one attempt and never
 * delays itself (a job that delays itself loses triggers); what waits asks to be woken.
 */
export function createReconcile(context: Context): JobHandler {
  const inTurn = pLimit(LOOKS_AT_A_TIME);
  const dueWrites = createDueWrites();
  return async ({ data: { projectId, instantMs: boundaryMs } }, signal) => {
    if (projectId === undefined) return { kind: 'done' };
    const early = await waitForBoundary(context, projectId, boundaryMs, signal);
    if (early) await lookAtOnce(context, early, { projectId, signal, boundaryMs, due: await dueWrites.begin() });
    else await inTurn(() => look(context, { projectId, signal, boundaryMs }));
    return { kind: 'done' };
  };
}

/**
 * Waits for a boundary that is about to come. Where what was read will do at the instant, the project is taken already, so that only
 * the writing is left to do.
 */
async function waitForBoundary(
  context: Context,
  projectId: string,
  instantMs: number | undefined,
  signal: AbortSignal,
): Promise<TakenProject | undefined> {
  const { clock, fleet, store } = context;
  const nowMs = clock.now();
  if (instantMs === undefined || instantMs <= nowMs || instantMs - nowMs > MOST_AHEAD_MS) return undefined;
  const willDo = fleet.ageMs(projectId) + clock.realDelayMs(instantMs) <= FRESH_MS;
  const taken = willDo ? await takeProject(context, projectId) : undefined;
  try {
    await clock.sleepUntil(instantMs, signal);
    return taken;
  } catch (error) {
    if (taken) await store.releaseLease(taken.lease);
    throw error;
  }
}

/** With a project that was taken before its boundary; of those no more come at once than could be read before it. */
async function lookAtOnce(context: Context, early: TakenProject, occasion: Occasion): Promise<void> {
  try {
    if (holdsLongEnough(context, early)) return await lookAtTaken(context, early, occasion);
    await context.store.releaseLease(early.lease);
    await look(context, occasion);
  } finally {
    occasion.due?.end();
  }
}

async function look(context: Context, occasion: Occasion): Promise<void> {
  const taken = await takeProject(context, occasion.projectId);
  if (taken) await lookAtTaken(context, taken, occasion);
  else await wakeAt(context, occasion.projectId, context.clock.now() + LEASE_RETRY_MS);
}

async function lookAtTaken(context: Context, taken: TakenProject, occasion: Occasion): Promise<void> {
  try {
    await reconcileProject(context, taken, occasion);
  } finally {
    await context.store.releaseLease(taken.lease);
  }
}

interface Occasion {
  projectId: string;
  /** A stop ends the look with an error, so that the trigger is left to the next daemon. */
  signal: AbortSignal;
  /** The boundary that was the reason to look, if one was. */
  boundaryMs: number | undefined;
  /** Where writes are due now: the first of the look is one of them. */
  due?: DueWrite;
}

async function reconcileProject(
  context: Context,
  { lease, records: stored }: TakenProject,
  { projectId, signal, boundaryMs: crossedMs, due }: Occasion,
): Promise<void> {
  const begunMs = context.clock.monotonicMs();
  await context.overrides.refresh(context.store, context.clock.now());
  const notBeforeMs = notBelievedBefore(context, stored);
  const picture = await freshPicture(context, projectId, { notBeforeMs, signal, deadlineMs: READ_DEADLINE_MS });
  signal.throwIfAborted();
  if (!picture) {
    // What a list that is older than this look does not have may be in the next.
    const mayExist = context.fleet.listed(projectId) !== undefined || context.fleet.listAskedAtMonotonicMs < begunMs;
    if (mayExist) await wakeAt(context, projectId, context.clock.now() + READ_RETRY_MS);
    return;
  }
  const records = await settledRecords(context, lease, picture, stored, signal);
  const { policies } = context;
  const boundaries = crossedBoundaries(context, picture.computes, crossedMs);
  const conclusions = await rememberWishes(context, lease, concludeProject(context, picture.computes, records));
  for (const conclusion of conclusions) context.fleet.conclude(conclusion);
  for (const conclusion of inOrderOfWriting(conclusions)) {
    signal.throwIfAborted();
    // Neither by an old picture nor by rules that have been replaced meanwhile.
    if (context.fleet.ageMs(projectId) > FRESH_MS || context.policies !== policies) {
      await requestReconcile(context, projectId);
      break;
    }
    const boundaryMs = boundaries.get(conclusion.compute.computeId);
    const written = await applyAction(context, lease, conclusion, { boundaryMs, due });
    if (written.lookAgainMs !== undefined) {
      await wakeAt(context, projectId, context.clock.now() + written.lookAgainMs);
    }
    if (!written.goOn) break;
  }
  await arrangeNextLooks(context, projectId);
}

/**
 * What was read before a change was sent is not believed; nor is anything read so far if another daemon sent the last one,
 * since its clock is not ours.
 */
function notBelievedBefore({ fleet, clock }: Context, stored: ReadonlyMap<string, ComputeRecord>): number {
  const instants = [...stored].map(([computeId, { lastSentAtMs = 0 }]) => {
    const own = fleet.conclusion(computeId)?.record.lastSentAtMs ?? 0;
    return own === lastSentAtMs ? lastSentAtMs : Math.max(lastSentAtMs, clock.now());
  });
  return Math.max(0, ...instants);
}

/** By compute, the boundary that was crossed since the last look: what a change now is late by. */
function crossedBoundaries(
  { fleet, clock }: Context,
  computes: readonly Compute[],
  boundaryMs: number | undefined,
): Map<string, number> {
  const crossed = new Map<string, number>();
  for (const { computeId } of computes) {
    const expected = fleet.conclusion(computeId)?.nextBoundaryMs;
    const instantMs = expected !== undefined && expected <= clock.now() ? expected : boundaryMs;
    if (instantMs !== undefined) crossed.set(computeId, instantMs);
  }
  return crossed;
}

/** Records as the store has them, with new computes met, answers that never came settled, and the vanished forgotten. */
async function settledRecords(
  context: Context,
  lease: Lease,
  picture: Picture,
  stored: ReadonlyMap<string, ComputeRecord>,
  signal: AbortSignal,
): Promise<Map<string, ComputeRecord>> {
  const { store, mode, policies, overrides, manualChanges } = context;
  const nowMs = context.clock.now();
  const { projectId } = picture.project;
  const records = new Map<string, ComputeRecord>();
  for (const compute of picture.computes) {
    // A store that came back empty must not make ebb take for the baseline what it has applied itself.
    const known = stored.get(compute.computeId) ?? context.fleet.conclusion(compute.computeId)?.record;
    const before = known ?? firstRecord(compute, nowMs);
    const options = { signal, deadlineMs: READ_DEADLINE_MS };
    const answered = await settleUnanswered(context, before, compute, options);
    const settled = forgetRestored(forgetOvercome(answered, compute), compute, nowMs);
    const looked = lookedAt(settled, mode, nowMs);
    const situation = { policies, compute, record: looked, nowMs, holds: overrides.holds, manualChanges };
    const after = noticeManualChanges(looked, compute, nowMs, (group) => isReverted(situation, group));
    const isNews = after !== stored.get(compute.computeId);
    if (isNews && !(await store.putRecord(projectId, compute.computeId, after, lease))) {
      throw new Error(`the lease on project ${projectId} was lost while it was looked at`);
    }
    reportDegraded(context, compute, before, after);
    reportManualChanges(context, compute, before, after);
    records.set(compute.computeId, after);
  }
  for (const computeId of stored.keys()) {
    if (!records.has(computeId)) await store.deleteRecord(projectId, computeId, lease);
  }
  return records;
}

/**
 * Where the compute has what policies want by now, it is ebb's own from then on, whoever has set it; and what is wanted is
 * remembered. What is about to be written is stored with its intent.
 */
async function rememberWishes(context: Context, lease: Lease, conclusions: Conclusion[]): Promise<Conclusion[]> {
  if (context.mode === 'observe') return conclusions;
  const { policies, overrides } = context;
  const remembered: Conclusion[] = [];
  for (const conclusion of conclusions) {
    const { compute, decision, plan } = conclusion;
    const { baseline } = conclusion.record;
    const agreed = withAgreed(conclusion.record, compute, decision);
    const record = withWanted({ policies, compute, baseline, holds: overrides.holds, decision, record: agreed });
    if (record !== conclusion.record && plan.verdict !== 'act') {
      await context.store.putRecord(compute.projectId, compute.computeId, record, lease);
    }
    remembered.push(record === conclusion.record ? conclusion : { ...conclusion, record });
  }
  return remembered;
}

/** Says it when a change by hand is first seen. */
function reportManualChanges(context: Context, compute: Compute, before: ComputeRecord, after: ComputeRecord): void {
  for (const group of ['size', 'suspend_timeout'] as const) {
    const mark = after.manual?.[group];
    if (mark && mark.seenAtMs !== before.manual?.[group]?.seenAtMs) {
      context.notify({ kind: 'manual_change', compute, group, applied: before.lastApplied });
    }
  }
}

function lookedAt(record: ComputeRecord, mode: Context['mode'], nowMs: number): ComputeRecord {
  if (mode === 'observe' || record.enforcedSinceMs !== undefined) return record;
  return { ...record, enforcedSinceMs: nowMs };
}

function inOrderOfWriting(conclusions: readonly Conclusion[]): Conclusion[] {
  const rank = ({ plan }: Conclusion) => plan.actions[0] ?? { raises: false, priority: 0 };
  return conclusions.filter(({ plan }) => plan.verdict === 'act').toSorted((a, b) => compareRanks(rank(a), rank(b)));
}

async function arrangeNextLooks(context: Context, projectId: string): Promise<void> {
  const nowMs = context.clock.now();
  const conclusions = context.fleet.conclusionsOf(projectId);
  if (conclusions.some(({ record }) => record.openOperations.length > 0)) await requestFollowing(context, projectId);
  const ahead = conclusions.flatMap(({ plan }) => plan.untilMs ?? []).filter((ms) => ms > nowMs);
  if (ahead.length > 0) await wakeAt(context, projectId, Math.min(...ahead));
  await scheduleBoundaries(context, conclusions);
}
