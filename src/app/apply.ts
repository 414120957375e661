import type { ComputeRecord } from '../domain/compute-record.ts';
import type { Action } from '../domain/plan.ts';
import { withFailure } from '../domain/records.ts';
import type { ApiResult, ChangeAnswer } from '../ports/control-api.ts';
import type { WriteOutcome } from '../ports/notifier.ts';
import type { Lease } from '../ports/store.ts';
import type { Context } from './context.ts';
import type { Conclusion } from './fleet.ts';
import { reportApiError } from './pictures.ts';

/** How long a project's lease holds, in real milliseconds. It is renewed before each write. */
export const LEASE_MS = 15_000;

/** Shorter than the rest of the lease, so that nobody else can hold it while a call is under way. Real milliseconds. */
const CALL_DEADLINE_MS = 10_000;

/** After a change that was not carried out, or of which nobody knows. */
const LOOK_AGAIN_MS = 5_000;

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
  const action = conclusion.plan.actions[0];
  if (!action) return { goOn: true };
  const intended = await storeIntent(context, lease, conclusion, action);
  if (!intended) return { goOn: false };
  const { compute, plan } = conclusion;
  context.notify({ kind: 'write_started', compute, action, reasons: plan.reasons });
  const answer = await context.api.updateCompute(compute.projectId, compute.computeId, action.fields, {
    deadlineMs: CALL_DEADLINE_MS,
  });
  const outcome = outcomeOf(answer);
  const record = recordAfter(context, { ...conclusion, record: intended }, action, answer, outcome);
  await keep(context, lease, { ...conclusion, record }, answer);
  report(context, conclusion, action, answer, outcome, boundaryMs);
  if (record.failures && outcome === 'refused') reportDegraded(context, conclusion, record);
  if (outcome === 'refused') return { goOn: true };
  if (!answer.ok) return { goOn: false, lookAgainMs: LOOK_AGAIN_MS };
  return { goOn: answer.value.operations.length === 0 };
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

/** What became of the request. A `refused` one would be refused again; the others may work later. */
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
  { record }: Conclusion,
  action: Action,
  answer: ApiResult<ChangeAnswer>,
  outcome: WriteOutcome,
): ComputeRecord {
  if (outcome === 'unknown') return record;
  const { intent: _answered, ...settled } = record;
  if (answer.ok) return withApplied(settled, action, answer.value, context.clock.now());
  const message = `${answer.error.status ?? answer.error.code}: ${answer.error.message}`;
  const failure = { desired: action.fields, message, atMs: context.clock.now() };
  if (outcome === 'refused') return withFailure(settled, { ...failure, permanent: true });
  return outcome === 'failed' ? withFailure(settled, { ...failure, permanent: false }) : settled;
}

function withApplied(record: ComputeRecord, action: Action, answer: ChangeAnswer, nowMs: number): ComputeRecord {
  const started = answer.operations
    .filter(({ outcome }) => outcome === 'pending')
    .map(({ operationId, action: name }) => ({
      operationId,
      action: name,
      startedAtMs: nowMs,
      policy: action.policy,
      fields: action.fields,
    }));
  return {
    ...record,
    lastApplied: { ...record.lastApplied, ...action.fields },
    openOperations: [...record.openOperations, ...started],
  };
}

async function keep(
  context: Context,
  lease: Lease,
  conclusion: Conclusion,
  answer: ApiResult<ChangeAnswer>,
): Promise<void> {
  const { compute, record } = conclusion;
  const { pendingState: _before, ...rest } = compute;
  const after = answer.ok ? { ...rest, ...answer.value.settings, ...stateOf(answer.value) } : compute;
  context.fleet.conclude({ ...conclusion, compute: after, record });
  const kept = await context.store.putRecord(compute.projectId, compute.computeId, record, lease);
  if (!kept) {
    const fields = { event: 'ebb.lease_lost', project: compute.projectId, compute: compute.computeId };
    context.telemetry.log.warn(fields, 'the lease was lost during a write; its intent tells whoever comes next');
  }
}

function stateOf({ state, pendingState }: ChangeAnswer): Pick<ChangeAnswer, 'state' | 'pendingState'> {
  return { state, ...(pendingState !== undefined && { pendingState }) };
}

function report(
  context: Context,
  { compute, plan, decision }: Conclusion,
  action: Action,
  answer: ApiResult<ChangeAnswer>,
  outcome: WriteOutcome,
  boundaryMs: number | undefined,
): void {
  if (answer.ok) context.outages.up('control API');
  else if (outcome === 'unknown' || outcome === 'failed') reportApiError(context, answer.error);
  const late = boundaryMs !== undefined && boundaryMs <= decision.instantMs;
  context.notify({
    kind: 'write_ended',
    compute,
    action,
    reasons: plan.reasons,
    outcome,
    operations: answer.ok ? answer.value.operations : [],
    ...(!answer.ok && { error: answer.error }),
    ...(late && { latenessMs: decision.instantMs - boundaryMs }),
  });
}

function reportDegraded(context: Context, { compute }: Conclusion, { failures }: ComputeRecord): void {
  if (!failures) return;
  const { desired, count, message } = failures;
  context.notify({ kind: 'degraded', compute, desired, failures: count, message });
}
