import { type ComputeSettings, FIELD_GROUPS, fieldsOf, hasSettings } from '../../domain/compute/compute.ts';
import { withoutMark } from '../../domain/plan/manual-changes.ts';
import type { Action } from '../../domain/plan/plan.ts';
import type { ComputeRecord } from '../../domain/records/compute-record.ts';
import { withFailure, withoutFailures } from '../../domain/records/failures.ts';
import { withReversal } from '../../domain/records/fights.ts';
import { withLastChange } from '../../domain/records/lag.ts';
import type { WriteOutcome } from '../../ports/compute-events.ts';
import type { ApiResult, ChangeAnswer, ControlApiError, Operation } from '../../ports/control-api.ts';

/** The answer to a PATCH or a restart; only a PATCH returns the compute's settings. */
export type WriteAnswer = ApiResult<Partial<ChangeAnswer> & { operations: Operation[] }>;

/**
 * Classifies the answer. A `refused` request would be refused again; `locked`, `throttled` and `failed` had no effect, for reasons outside
 * the compute; the effect of an `unknown` one is unknown.
 */
export function outcomeOf(answer: WriteAnswer): WriteOutcome {
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

/** The record of a compute after a write that ended at `nowMs`. */
export function recordAfter(
  intended: ComputeRecord,
  action: Action,
  answer: WriteAnswer,
  nowMs: number,
): ComputeRecord {
  // A reading made during the call may be older than its effect: only later ones count.
  const sent = { ...intended, lastSentAtMs: nowMs };
  const outcome = outcomeOf(answer);
  if (outcome === 'unknown') return sent;
  const { intent: _answered, ...answered } = sent;
  if (answer.ok) return withApplied(answered, action, answer.value, { before: intended.intent?.before, nowMs });
  if (outcome !== 'refused') return answered;
  const { maxCu, suspendTimeoutSeconds } = action.fields;
  // A compute that is not ready yet says nothing of the fields.
  const isOfFields = answer.error.code !== 'not_ready';
  if (isOfFields && maxCu !== undefined && suspendTimeoutSeconds !== undefined)
    return { ...answered, oneFieldGroupAtATime: true };
  const message = `${answer.error.status ?? answer.error.code}: ${answer.error.message}`;
  return withFailure(answered, { desired: action.fields, message, atMs: nowMs, permanent: isPermanent(answer.error) });
}

function withApplied(
  record: ComputeRecord,
  action: Action,
  { operations, settings, updatedAtMs }: Extract<WriteAnswer, { ok: true }>['value'],
  { before, nowMs }: { before: Partial<ComputeSettings> | undefined; nowMs: number },
): ComputeRecord {
  const { fields, policy } = action;
  const started = operations
    .filter(({ outcome }) => outcome === 'pending')
    .map(({ operationId, action: name }) => ({ operationId, action: name, startedAtMs: nowMs, policy, fields }));
  const sent: ComputeRecord = {
    ...withReversals(record, action, nowMs),
    openOperations: [...record.openOperations, ...started],
    ...(action.disconnects && { lastDisruption: { atMs: nowMs, lowered: !action.raises, policy } }),
  };
  if (settings && !hasSettings(settings, fields)) {
    const message = 'the control API accepted the change, but the compute does not have it';
    return withFailure(sent, { desired: fields, message, atMs: nowMs, permanent: true });
  }
  const { lagging: _lagging, ...caughtUp } = sent;
  const applied = withLastChange({ ...caughtUp, lastApplied: { ...record.lastApplied, ...fields } }, fields, {
    ...{ before, answeredAtMs: nowMs },
    ...(updatedAtMs !== undefined && { updatedAtMs }),
  });
  return started.length > 0 ? applied : withoutFailures(applied, fields);
}

/** A missing permission of the account is permanent; other refusals may be temporary. */
function isPermanent({ code }: ControlApiError): boolean {
  return code === 'forbidden' || code === 'precondition';
}

/** Overwriting a person's value is a reversal, except where a trial ends its respect; too many reversals stop the field. */
function withReversals(record: ComputeRecord, { fields, endsRespect }: Action, nowMs: number): ComputeRecord {
  return FIELD_GROUPS.filter(
    (group) => record.manual?.[group] !== undefined && fieldsOf(group, fields) !== undefined,
  ).reduce((after, group) => withoutMark(endsRespect ? after : withReversal(after, group, nowMs), group), record);
}
