import type { Compute } from '../domain/compute.ts';
import type { ComputeRecord } from '../domain/compute-record.ts';
import { isDegraded, worstFailures } from '../domain/failures.ts';
import { freezesAt } from '../domain/freezes.ts';
import { hasOperationRunning } from '../domain/gates/operation-running.ts';
import { type Action, reasonsToAct } from '../domain/plan.ts';
import type { WriteOrigin, WriteOutcome } from '../ports/notifier.ts';
import type { Lease } from '../ports/store.ts';
import { concludeCompute } from './conclude.ts';
import type { Context } from './context.ts';
import type { DueWrite } from './due-writes.ts';
import type { Conclusion } from './fleet.ts';
import { reportApiError } from './outages.ts';
import { outcomeOf, recordAfter, type WriteAnswer } from './record-after.ts';
import { SLOT_RETRY_MS } from './slots.ts';

/** How long a project's lease holds, in real milliseconds. It is prolonged with each intent. */
export const LEASE_MS = 15_000;

/** A call must end so long before the lease does, so that nobody else holds it while the call is under way. */
const LEASE_MARGIN_MS = 3_000;

/** A lease that holds for less is not enough for a call. */
const SHORTEST_CALL_MS = 2_000;

/** When to look again at a compute that was frozen between the plan and the write, in milliseconds. */
const FROZEN_RETRY_MS = 60_000;

/** When to look again after a change that was not made, by what stood in the way, in milliseconds. */
const LOOK_AGAIN_MS: Partial<Record<WriteOutcome, number>> = {
  locked: 5_000,
  throttled: 5_000,
  failed: 20_000,
  unknown: 5_000,
};

type AnswerOf<R> = Extract<R, { ok: true }> extends { value: infer V } ? V : never;

export interface Written {
  /** False if nothing more may be written to this project now. */
  goOn: boolean;
  /** The change was not made, but may be soon: look again after so many milliseconds. */
  lookAgainMs?: number;
}

export interface WriteOccasion {
  /** The boundary that made it due, if one did. */
  boundaryMs?: number | undefined;
  due?: DueWrite | undefined;
}

/**
 * Writes one change: intent, call, record. The intent is stored before the call, so that a daemon that dies in between leaves
 * a trace, and whoever comes next reads before it sends. Nothing is sent without the lease.
 */
export async function applyAction(
  context: Context,
  lease: Lease,
  conclusion: Conclusion,
  { boundaryMs, due }: WriteOccasion = {},
): Promise<Written> {
  const { compute, plan } = conclusion;
  const action = plan.actions[0];
  if (!action) return { goOn: true };
  const obstacle = await obstacleTo(context, conclusion, action);
  if (obstacle) return obstacle;
  const askedMs = context.clock.monotonicMs();
  const intended = await storeIntent(context, lease, conclusion, action);
  // The lease was prolonged after that was asked; the answer may have waited for a process that was asleep.
  const intendedMs = context.clock.monotonicMs();
  const deadlineMs = LEASE_MS - (intendedMs - askedMs) - LEASE_MARGIN_MS;
  if (!intended || deadlineMs < SHORTEST_CALL_MS) return callOff(context, lease, conclusion, action);
  context.notify({ kind: 'write_started', compute, action, reasons: reasonsToAct(plan), origin: originOf(context) });
  const answer = await send(context, compute, action, deadlineMs);
  const answeredMs = context.clock.now();
  const latenessMs = boundaryMs === undefined ? undefined : Math.max(0, answeredMs - boundaryMs);
  await due?.endAndGiveWay(Math.max(0, deadlineMs - (context.clock.monotonicMs() - intendedMs)));
  const outcome = outcomeOf(answer);
  const record = recordAfter(intended, action, answer, answeredMs);
  if (action.disconnects && record.openOperations.length === 0 && outcome !== 'unknown') {
    await context.slots.release(context, compute.computeId, action.policy);
  }
  await keep(context, lease, conclusion, record, answer);
  report(context, conclusion, action, answer, latenessMs);
  reportDegraded(context, compute, intended, record);
  const lookAgainMs = LOOK_AGAIN_MS[outcome];
  return {
    goOn: outcome === 'refused' || (answer.ok && answer.value.operations.length === 0),
    ...(lookAgainMs !== undefined && { lookAgainMs }),
  };
}

/** What has come in the way between the plan and the write. A slot is taken last, since it has to be given back. */
async function obstacleTo(context: Context, conclusion: Conclusion, action: Action): Promise<Written | undefined> {
  const [leave, frozen] = await Promise.all([context.mayWrite(), isFrozenMeanwhile(context, conclusion)]);
  if (!leave.ok) {
    // Whoever may write again looks at everything by itself.
    context.telemetry.metrics.increment('ebb_skipped_total', { reason: leave.reason.code });
    return { goOn: false };
  }
  if (frozen) return { goOn: true, lookAgainMs: FROZEN_RETRY_MS };
  if (!action.disconnects || (await context.slots.take(context, conclusion.compute.computeId, action)))
    return undefined;
  return { goOn: true, lookAgainMs: SLOT_RETRY_MS };
}

/** Nothing was sent: the intent, if it was stored, must not look like a change without an answer. */
async function callOff(
  context: Context,
  lease: Lease,
  { compute, record }: Conclusion,
  action: Action,
): Promise<Written> {
  await context.store.putRecord(compute.projectId, compute.computeId, record, lease);
  if (action.disconnects) await context.slots.release(context, compute.computeId, action.policy);
  return { goOn: false, lookAgainMs: SHORTEST_CALL_MS };
}

function originOf({ policies, revision }: Context): WriteOrigin {
  return { set: policies.set.hash, ...(revision !== undefined && { revision }) };
}

/** A PATCH, or a restart. Nothing else of what the daemon does changes anything. */
function send({ api }: Context, { projectId, computeId }: Compute, action: Action, deadlineMs: number) {
  if (action.kind === 'restart') return api.restartCompute(projectId, computeId, { deadlineMs });
  return api.updateCompute(projectId, computeId, action.fields, { deadlineMs });
}

/** Freezes, and holds that keep a compute as it is, are looked for before each write: one may have been set meanwhile. */
async function isFrozenMeanwhile({ store, clock }: Context, { compute, plan }: Conclusion): Promise<boolean> {
  const nowMs = clock.now();
  const raises = plan.actions[0]?.raises ?? false;
  const [freezes, holds] = await Promise.all([store.freezes(nowMs), store.holds(nowMs)]);
  const frozen = freezesAt(freezes, compute, nowMs).some(({ allowRaise }) => !(allowRaise && raises));
  return frozen || holds.some(({ computeId, freeze }) => freeze === true && computeId === compute.computeId);
}

async function storeIntent(
  context: Context,
  lease: Lease,
  { compute, record }: Conclusion,
  action: Action,
): Promise<ComputeRecord | undefined> {
  const atMs = context.clock.now();
  const asked = action.kind === 'restart' ? { restart: true as const } : { fields: action.fields };
  const intent = { ...asked, atMs, policy: action.policy };
  const lastDecidedAtMs = Math.max(atMs, record.lastDecidedAtMs);
  const intended = { ...record, intent, lastDecidedAtMs, lastSentAtMs: atMs };
  const stored = await context.store.putRecord(compute.projectId, compute.computeId, intended, lease, LEASE_MS);
  return stored ? intended : undefined;
}

/** Stores the record, and concludes anew: what is left to do is looked for by the keeper. */
async function keep(
  context: Context,
  lease: Lease,
  conclusion: Conclusion,
  record: ComputeRecord,
  answer: WriteAnswer,
): Promise<void> {
  const compute = answer.ok ? changed(conclusion.compute, answer.value) : conclusion.compute;
  const projectBusy = context.fleet
    .conclusionsOf(compute.projectId)
    .some((other) => other.compute.computeId !== compute.computeId && hasOperationRunning(other.compute, other.record));
  context.fleet.conclude(concludeCompute(context, { compute, record, projectBusy }));
  if (await context.store.putRecord(compute.projectId, compute.computeId, record, lease)) return;
  const fields = { event: 'ebb.lease_lost', project: compute.projectId, compute: compute.computeId };
  context.telemetry.log.warn(fields, 'the lease was lost during a write; its intent tells whoever comes next');
}

function changed(before: Compute, { settings, state, pendingState }: AnswerOf<WriteAnswer>): Compute {
  if (state === undefined) return before;
  const { pendingState: _over, ...rest } = before;
  return { ...rest, ...settings, state, ...(pendingState !== undefined && { pendingState }) };
}

function report(
  context: Context,
  { compute, plan }: Conclusion,
  action: Action,
  answer: WriteAnswer,
  latenessMs: number | undefined,
): void {
  if (answer.ok) context.outages.up('control API');
  else reportApiError(context, compute.projectId, answer.error);
  context.notify({
    kind: 'write_ended',
    compute,
    action,
    reasons: reasonsToAct(plan),
    outcome: outcomeOf(answer),
    operations: answer.ok ? answer.value.operations : [],
    origin: originOf(context),
    ...(!answer.ok && { error: answer.error }),
    ...(latenessMs !== undefined && { latenessMs }),
  });
}

/** Says it when a compute becomes degraded, not each time that it still is. */
export function reportDegraded(context: Context, compute: Compute, before: ComputeRecord, after: ComputeRecord): void {
  const worst = worstFailures(after);
  if (!worst || !isDegraded(worst) || worst.count === worstFailures(before)?.count) return;
  const { desired, count, message } = worst;
  context.notify({ kind: 'degraded', compute, desired, failures: count, message });
}
