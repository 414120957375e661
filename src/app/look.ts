import type { Compute } from '../domain/compute.ts';
import type { ComputeRecord } from '../domain/compute-record.ts';
import { forgetOvercome } from '../domain/failures.ts';
import { isReverted } from '../domain/judge.ts';
import { noticeManualChanges, withAgreed } from '../domain/manual-changes.ts';
import { firstRecord } from '../domain/records.ts';
import { forgetRestored } from '../domain/restore.ts';
import { withWanted } from '../domain/wanted-since.ts';
import type { Lease } from '../ports/store.ts';
import { applyAction, reportDegraded } from './apply.ts';
import { scheduleBoundaries } from './boundaries.ts';
import { concludeProject } from './conclude.ts';
import type { Context } from './context.ts';
import type { DueWrite } from './due-writes.ts';
import type { Conclusion, Picture } from './fleet.ts';
import { FRESH_MS } from './pictures.ts';
import { settleUnanswered } from './settle-intents.ts';
import { READ_DEADLINE_MS, type SeenProject } from './taken-project.ts';
import { requestFollowing, requestReconcile, wakeAt } from './triggers.ts';
import { compareRanks } from './write-order.ts';

export interface Occasion {
  /** A stop ends the look with an error, so that the trigger is left to the next daemon. */
  signal: AbortSignal;
  /** The boundary that was the reason to look, if one was. */
  boundaryMs: number | undefined;
  /** Where writes are due now: those of the look are one of them. */
  due?: DueWrite;
}

/**
 * Decides what should be of what is, and does the difference: settles what an earlier daemon left open, plans for every compute, and
 * writes what may be written now, raises first, then by priority.
 */
export async function lookAt(
  context: Context,
  { lease, records: stored, picture }: SeenProject,
  { signal, boundaryMs: crossedMs, due }: Occasion,
): Promise<void> {
  const { projectId } = picture.project;
  await context.overrides.refresh(context.store, context.clock.now());
  const records = await settledRecords(context, lease, picture, stored, signal);
  const { policies } = context;
  const boundaries = crossedBoundaries(context, picture.computes, crossedMs);
  const conclusions = await rememberWishes(context, lease, concludeProject(context, picture.computes, records));
  for (const conclusion of conclusions) context.fleet.conclude(conclusion);
  const toWrite = inOrderOfWriting(conclusions);
  for (const conclusion of toWrite) {
    signal.throwIfAborted();
    // Neither by an old picture nor by rules that have been replaced meanwhile.
    if (context.fleet.ageMs(projectId) > FRESH_MS || context.policies !== policies) {
      await requestReconcile(context, projectId);
      break;
    }
    const boundaryMs = boundaries.get(conclusion.compute.computeId);
    // Until the last is answered the project keeps its turn: a raise that comes second must not wait for everybody's lowerings.
    const isLast = conclusion === toWrite.at(-1);
    const written = await applyAction(context, lease, conclusion, { boundaryMs, due: isLast ? due : undefined });
    if (written.lookAgainMs !== undefined) {
      await wakeAt(context, projectId, context.clock.now() + written.lookAgainMs);
    }
    if (!written.goOn) break;
  }
  await arrangeNextLooks(context, projectId);
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
