import type { ComputeRecord } from '../domain/compute-record.ts';
import { firstRecord } from '../domain/records.ts';
import type { JobHandler } from '../ports/job-queue.ts';
import type { Lease } from '../ports/store.ts';
import { applyAction, LEASE_MS } from './apply.ts';
import { scheduleBoundaries } from './boundaries.ts';
import { concludeProject } from './conclude.ts';
import type { Context } from './context.ts';
import type { Conclusion, Picture } from './fleet.ts';
import { freshPicture } from './pictures.ts';
import { settleUnanswered } from './settle-intents.ts';
import { requestFollowing, wakeAt } from './triggers.ts';

/** How long to wait for whoever holds the project's lease, in milliseconds. */
const LEASE_RETRY_MS = 500;

/**
 * Makes one project as it should be: reads what is, decides what should be, does the difference. It has one attempt and never
 * delays itself (a job that delays itself loses triggers); what waits asks to be woken.
 */
export function createReconcile(context: Context): JobHandler {
  return async ({ data: { projectId, instantMs } }, signal) => {
    if (projectId === undefined) return { kind: 'done' };
    const lease = await context.store.acquireLease(`project-${projectId}`, context.holder, LEASE_MS);
    if (!lease) {
      await wakeAt(context, projectId, context.clock.now() + LEASE_RETRY_MS);
      return { kind: 'done' };
    }
    try {
      await reconcileProject(context, lease, projectId, { signal, boundaryMs: instantMs });
    } finally {
      await context.store.releaseLease(lease);
    }
    return { kind: 'done' };
  };
}

interface Occasion {
  signal: AbortSignal;
  /** The boundary that was the reason to look, if one was. */
  boundaryMs: number | undefined;
}

async function reconcileProject(context: Context, lease: Lease, projectId: string, occasion: Occasion): Promise<void> {
  const stored = await context.store.records(projectId);
  const sentAtMs = [...stored.values()].map(({ lastSentAtMs }) => lastSentAtMs ?? 0);
  const notBeforeMs = Math.max(0, ...sentAtMs);
  const picture = await freshPicture(context, projectId, { notBeforeMs, signal: occasion.signal });
  if (!picture) return;
  const records = await settledRecords(context, lease, picture, stored, occasion.signal);
  const conclusions = concludeProject(context, picture.computes, records);
  for (const conclusion of conclusions) context.fleet.conclude(conclusion);
  for (const conclusion of inOrderOfWriting(conclusions)) {
    if (occasion.signal.aborted) return;
    const written = await applyAction(context, lease, conclusion, occasion.boundaryMs);
    if (written.lookAgainMs !== undefined) await wakeAt(context, projectId, context.clock.now() + written.lookAgainMs);
    if (!written.goOn) break;
  }
  await arrangeNextLooks(context, projectId);
}

/** Records as the store has them, with new computes met, answers that never came settled, and the vanished forgotten. */
async function settledRecords(
  context: Context,
  lease: Lease,
  picture: Picture,
  stored: ReadonlyMap<string, ComputeRecord>,
  signal: AbortSignal,
): Promise<Map<string, ComputeRecord>> {
  const { store, mode } = context;
  const nowMs = context.clock.now();
  const { projectId } = picture.project;
  const records = new Map<string, ComputeRecord>();
  for (const compute of picture.computes) {
    const before = stored.get(compute.computeId);
    const settled = await settleUnanswered(context, before ?? firstRecord(compute, nowMs), compute, signal);
    const after = lookedAt(settled, mode, nowMs);
    if (after !== before) await store.putRecord(projectId, compute.computeId, after, lease);
    records.set(compute.computeId, after);
  }
  for (const computeId of stored.keys()) {
    if (!records.has(computeId)) await store.deleteRecord(projectId, computeId, lease);
  }
  return records;
}

function lookedAt(record: ComputeRecord, mode: Context['mode'], nowMs: number): ComputeRecord {
  if (mode === 'observe' || record.enforcedSinceMs !== undefined) return record;
  return { ...record, enforcedSinceMs: nowMs };
}

/** Raises before lowerings, then by the priority of the policy that decides. */
function inOrderOfWriting(conclusions: readonly Conclusion[]): Conclusion[] {
  const rank = ({ plan }: Conclusion) => plan.actions[0] ?? { raises: false, priority: 0 };
  return conclusions
    .filter(({ plan }) => plan.verdict === 'act')
    .toSorted((a, b) => Number(rank(b).raises) - Number(rank(a).raises) || rank(b).priority - rank(a).priority);
}

async function arrangeNextLooks(context: Context, projectId: string): Promise<void> {
  const nowMs = context.clock.now();
  const conclusions = context.fleet.conclusionsOf(projectId);
  if (conclusions.some(({ record }) => record.openOperations.length > 0)) await requestFollowing(context, projectId);
  const untils = conclusions.map(({ plan }) => plan.untilMs).filter((ms) => ms !== undefined);
  const ahead = untils.filter((ms) => ms > nowMs);
  if (ahead.length > 0) await wakeAt(context, projectId, Math.min(...ahead));
  await scheduleBoundaries(context, conclusions);
}
