import type { Compute } from '../domain/compute.ts';
import { hasSettings } from '../domain/compute.ts';
import type { ComputeRecord } from '../domain/compute-record.ts';
import { isDegraded } from '../domain/gates/failed-before.ts';
import { hasOperationRunning } from '../domain/gates/operation-running.ts';
import type { Action } from '../domain/plan.ts';
import { withFailure } from '../domain/records.ts';
import type { ApiResult, ChangeAnswer } from '../ports/control-api.ts';
import type { WriteOutcome } from '../ports/notifier.ts';
import type { Lease } from '../ports/store.ts';
import { concludeCompute } from './conclude.ts';
import type { Context } from './context.ts';
import type { Conclusion } from './fleet.ts';
import { reportApiError } from './outages.ts';

/** How long a project's lease holds, in real milliseconds. It is renewed before each write. */
export const LEASE_MS = 15_000;

/** A call must end so long before the lease does, so that nobody else holds it while the call is under way. */
const LEASE_MARGIN_MS = 3_000;

/** A lease that holds for less is not enough for a call. */
const SHORTEST_CALL_MS = 2_000;

/** When to look again after a change that was not made, by what stood in the way, in milliseconds. */
const LOOK_AGAIN_MS: Partial<Record<WriteOutcome, number>> = {
  locked: 5_000,
  throttled: 5_000,
  failed: 30_000,
  unknown: 5_000,
};

export interface Written {
  /** False if nothing more may be written to this project now. */
  goOn: boolean;
  /** The change was not made, but may be soon: look again after so many milliseconds. */
  lookAgainMs?: number;
}

/**
 * Writes one change: intent, call, record. The intent is stored before the call, so that a daemon that dies in between leaves
 * a trace, and whoever comes next reads before it sends. Nothing is sent without the lease.
 */
export async function applyAction(
  context: Context,
  lease: Lease,
  conclusion: Conclusion,
  boundaryMs: number | undefined,
): Promise<Written> {
  const { compute, plan } = conclusion;
  const action = plan.actions[0];
  if (!action) return { goOn: true };
  const intended = await storeIntent(context, lease, conclusion, action);
  const deadlineMs = (await context.store.leaseRemainingMs(lease)) - LEASE_MARGIN_MS;
  if (!intended || deadlineMs < SHORTEST_CALL_MS) return { goOn: false, lookAgainMs: SHORTEST_CALL_MS };
  context.notify({ kind: 'write_started', compute, action, reasons: plan.reasons });
  const answer = await context.api.updateCompute(compute.projectId, compute.computeId, action.fields, { deadlineMs });
  const outcome = outcomeOf(answer);
  const record = recordAfter(context, intended, action, answer);
  await keep(context, lease, conclusion, record, answer);
  report(context, conclusion, action, answer, boundaryMs);
  reportDegraded(context, compute, intended, record);
  const lookAgainMs = LOOK_AGAIN_MS[outcome];
  return {
    goOn: outcome === 'refused' || (answer.ok && answer.value.operations.length === 0),
    ...(lookAgainMs !== undefined && { lookAgainMs }),
  };
}

async function storeIntent(
  context: Context,
  lease: Lease,
  { compute, record }: Conclusion,
  action: Action,
): Promise<ComputeRecord | undefined> {
  if (!(await context.store.renewLease(lease, LEASE_MS))) return undefined;
  const atMs = context.clock.now();
  const intent = { fields: action.fields, atMs, policy: action.policy };
  const lastDecidedAtMs = Math.max(atMs, record.lastDecidedAtMs);
  const intended = { ...record, intent, lastDecidedAtMs, lastSentAtMs: atMs };
  const stored = await context.store.putRecord(compute.projectId, compute.computeId, intended, lease);
  return stored ? intended : undefined;
}

/**
 * What became of the request. A `refused` one would be refused again; `locked`, `throttled` and `failed` were not carried out,
 * for reasons that are not the compute's; of an `unknown` one nobody knows.
 */
function outcomeOf(answer: ApiResult<ChangeAnswer>): WriteOutcome {
  if (answer.ok) return 'applied';
  if (answer.error.outcomeUnknown) return 'unknown';
  switch (answer.error.code) {
    case 'locked':
      return 'locked';
    case 'throttled':
    case 'timeout':
      return 'throttled';
    case 'unavailable':
    case 'malformed':
    case 'unauthorised':
      return 'failed';
    default:
      return 'refused';
  }
}

function recordAfter(
  context: Context,
  intended: ComputeRecord,
  action: Action,
  answer: ApiResult<ChangeAnswer>,
): ComputeRecord {
  // What was read while the call was under way may be older than its effect: only what is read from now on counts.
  const sent = { ...intended, lastSentAtMs: context.clock.now() };
  const outcome = outcomeOf(answer);
  if (outcome === 'unknown') return sent;
  const { intent: _answered, ...settled } = sent;
  if (answer.ok) return withApplied(settled, action, answer.value, context.clock.now());
  if (outcome !== 'refused') return settled;
  const { maxCu, suspendTimeoutSeconds } = action.fields;
  if (maxCu !== undefined && suspendTimeoutSeconds !== undefined) return { ...settled, oneFieldGroupAtATime: true };
  const message = `${answer.error.status ?? answer.error.code}: ${answer.error.message}`;
  return withFailure(settled, { desired: action.fields, message, atMs: context.clock.now(), permanent: true });
}

function withApplied(record: ComputeRecord, action: Action, answer: ChangeAnswer, nowMs: number): ComputeRecord {
  const { fields, policy } = action;
  const started = answer.operations
    .filter(({ outcome }) => outcome === 'pending')
    .map(({ operationId, action: name }) => ({ operationId, action: name, startedAtMs: nowMs, policy, fields }));
  if (!hasSettings(answer.settings, fields)) {
    const message = 'the control API accepted the change, but the compute does not have it';
    return withFailure(record, { desired: fields, message, atMs: nowMs, permanent: false });
  }
  const applied = {
    ...record,
    lastApplied: { ...record.lastApplied, ...fields },
    openOperations: [...record.openOperations, ...started],
  };
  if (started.length > 0) return applied;
  const { failures: _overcome, ...healthy } = applied;
  return healthy;
}

/** Stores the record, and concludes anew: what is left to do is looked for by the keeper. */
async function keep(
  context: Context,
  lease: Lease,
  conclusion: Conclusion,
  record: ComputeRecord,
  answer: ApiResult<ChangeAnswer>,
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

function changed(before: Compute, { settings, state, pendingState }: ChangeAnswer): Compute {
  const { pendingState: _over, ...rest } = before;
  return { ...rest, ...settings, state, ...(pendingState !== undefined && { pendingState }) };
}

function report(
  context: Context,
  { compute, plan }: Conclusion,
  action: Action,
  answer: ApiResult<ChangeAnswer>,
  boundaryMs: number | undefined,
): void {
  if (answer.ok) context.outages.up('control API');
  else reportApiError(context, compute.projectId, answer.error);
  context.notify({
    kind: 'write_ended',
    compute,
    action,
    reasons: plan.reasons,
    outcome: outcomeOf(answer),
    operations: answer.ok ? answer.value.operations : [],
    ...(!answer.ok && { error: answer.error }),
    ...(boundaryMs !== undefined && { latenessMs: Math.max(0, context.clock.now() - boundaryMs) }),
  });
}

/** Says it when a compute becomes degraded, not each time that it still is. */
export function reportDegraded(context: Context, compute: Compute, before: ComputeRecord, after: ComputeRecord): void {
  if (!after.failures || !isDegraded(after.failures)) return;
  if (isDegraded(before.failures) && before.failures?.count === after.failures.count) return;
  const { desired, count, message } = after.failures;
  context.notify({ kind: 'degraded', compute, desired, failures: count, message });
}
