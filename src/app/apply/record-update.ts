import { type ComputeSettings, FIELD_GROUPS, fieldsOf, hasSettings } from '../../domain/compute/compute.ts';
import { withoutMark } from '../../domain/plan/manual-changes.ts';
import type { Action } from '../../domain/plan/plan.ts';
import type { ComputeRecord } from '../../domain/records/compute-record.ts';
import { withFailure, withoutFailures } from '../../domain/records/failures.ts';
import { withReversal } from '../../domain/records/fights.ts';
import { withLastChange } from '../../domain/records/lag.ts';
import type { WriteOutcome } from '../../ports/compute-events.ts';
import type { ApiResult, ChangeAnswer, Operation } from '../../ports/control-api.ts';

/** The result of a PATCH or a restart; only a PATCH returns the compute's settings. */
export type WriteResult = Partial<ChangeAnswer> & { operations: Operation[] };
export type WriteAnswer = ApiResult<WriteResult>;

/**
 * Classifies the answer. A `refused` request would be refused again. A `locked`, `throttled` or `failed` request had no effect, for reasons
 * outside the compute. An `unknown` request may have had an effect.
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

/** Returns the record of a compute after a write that ended at `nowMs`. */
export function recordAfter(
  intended: ComputeRecord,
  action: Action,
  answer: WriteAnswer,
  nowMs: number,
): ComputeRecord {
  // A reading during the call may show the state before the change, so only later readings count.
  const sent = { ...intended, lastSentAtMs: nowMs };
  const outcome = outcomeOf(answer);
  if (outcome === 'unknown') return sent;
  const { intent: _answered, ...answered } = sent;
  if (answer.ok) return withApplied(answered, action, answer.value, { before: intended.intent?.before, nowMs });
  if (outcome !== 'refused') return answered;
  const { maxCu, suspendTimeoutSeconds } = action.fields;
  // The answer `not_ready` is about the compute, not about the fields.
  const isAboutFields = answer.error.code !== 'not_ready';
  // Perhaps only one of the groups is refused: the next writes try each by itself.
  if (isAboutFields && maxCu !== undefined && suspendTimeoutSeconds !== undefined)
    return { ...answered, oneFieldGroupAtATime: true };
  const { code, status } = answer.error;
  const message = `${status ?? code}: ${answer.error.message}`;
  // A retry would not help: the account lacks a permission, or a precondition is not met.
  const isPermanent = code === 'forbidden' || code === 'precondition';
  return withFailure(answered, { desired: action.fields, message, atMs: nowMs, isPermanent });
}

function withApplied(
  record: ComputeRecord,
  action: Action,
  { operations, settings, updatedAtMs }: WriteResult,
  { before, nowMs }: { before: Partial<ComputeSettings> | undefined; nowMs: number },
): ComputeRecord {
  const { fields, policy } = action;
  const started = operations
    .filter(({ outcome }) => outcome === 'pending')
    .map(({ operationId, action: name }) => ({ operationId, action: name, startedAtMs: nowMs, policy, fields }));
  const sent: ComputeRecord = {
    ...withReversalsOf(record, action, nowMs),
    openOperations: [...record.openOperations, ...started],
    ...(action.disconnects && { lastDisruption: { atMs: nowMs, lowered: !action.raises, policy } }),
  };
  if (settings && !hasSettings(settings, fields)) {
    const message = 'the control API accepted the change, but the compute does not have it';
    return withFailure(sent, { desired: fields, message, atMs: nowMs, isPermanent: true });
  }
  const { lagging: _lagging, ...caughtUp } = sent;
  const answer = { before, answeredAtMs: nowMs, ...(updatedAtMs !== undefined && { updatedAtMs }) };
  const lastApplied = { ...record.lastApplied, ...fields };
  const applied = withLastChange({ ...caughtUp, lastApplied }, fields, answer);
  return started.length > 0 ? applied : withoutFailures(applied, fields);
}

/**
 * Removes the marks of manual changes that the action overwrites. Each counts as a reversal, unless a trial ends the respect for it. After
 * too many reversals ebb leaves the field alone.
 */
function withReversalsOf(record: ComputeRecord, { fields, endsRespect }: Action, nowMs: number): ComputeRecord {
  let after = record;
  for (const group of FIELD_GROUPS) {
    if (record.manual?.[group] === undefined || fieldsOf(group, fields) === undefined) continue;
    after = withoutMark(endsRespect ? after : withReversal(after, group, nowMs), group);
  }
  return after;
}
