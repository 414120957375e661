import { hasSettings } from '../domain/compute.ts';
import type { ComputeRecord } from '../domain/compute-record.ts';
import type { FieldGroup } from '../domain/desired.ts';
import { withReversal } from '../domain/fights.ts';
import { fieldsOf, withoutMark } from '../domain/manual-changes.ts';
import type { Action } from '../domain/plan.ts';
import { withFailure } from '../domain/records.ts';
import type { ApiResult, ChangeAnswer, Operation } from '../ports/control-api.ts';
import type { WriteOutcome } from '../ports/notifier.ts';

/** What a PATCH or a restart is answered with; only a PATCH says what the compute is like afterwards. */
export type WriteAnswer = ApiResult<Partial<ChangeAnswer> & { operations: Operation[] }>;

/**
 * What became of the request. A `refused` one would be refused again; `locked`, `throttled` and `failed` were not carried out,
 * for reasons that are not the compute's; of an `unknown` one nobody knows.
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

/** What is remembered of a compute once a write has ended, at `nowMs`. */
export function recordAfter(
  intended: ComputeRecord,
  action: Action,
  answer: WriteAnswer,
  nowMs: number,
): ComputeRecord {
  // What was read while the call was under way may be older than its effect: only what is read from now on counts.
  const sent = { ...intended, lastSentAtMs: nowMs };
  const outcome = outcomeOf(answer);
  if (outcome === 'unknown') return sent;
  const { intent: _answered, ...settled } = sent;
  if (answer.ok) return withApplied(settled, action, answer.value, nowMs);
  if (outcome !== 'refused') return settled;
  const { maxCu, suspendTimeoutSeconds } = action.fields;
  if (maxCu !== undefined && suspendTimeoutSeconds !== undefined) return { ...settled, oneFieldGroupAtATime: true };
  const message = `${answer.error.status ?? answer.error.code}: ${answer.error.message}`;
  return withFailure(settled, { desired: action.fields, message, atMs: nowMs, permanent: true });
}

function withApplied(
  record: ComputeRecord,
  action: Action,
  { operations, settings }: Extract<WriteAnswer, { ok: true }>['value'],
  nowMs: number,
): ComputeRecord {
  const { fields, policy } = action;
  const started = operations
    .filter(({ outcome }) => outcome === 'pending')
    .map(({ operationId, action: name }) => ({ operationId, action: name, startedAtMs: nowMs, policy, fields }));
  if (settings && !hasSettings(settings, fields)) {
    const message = 'the control API accepted the change, but the compute does not have it';
    return withFailure(record, { desired: fields, message, atMs: nowMs, permanent: false });
  }
  const applied: ComputeRecord = {
    ...withReversals(record, action, nowMs),
    lastApplied: { ...record.lastApplied, ...fields },
    openOperations: [...record.openOperations, ...started],
    ...(action.disconnects && { lastDisruption: { atMs: nowMs, lowered: !action.raises } }),
  };
  if (started.length > 0) return applied;
  const { failures: _overcome, ...healthy } = applied;
  return healthy;
}

/** Writing over what a person had set is a reversal; too many of them stop the field. */
function withReversals(record: ComputeRecord, { fields }: Action, nowMs: number): ComputeRecord {
  const groups: readonly FieldGroup[] = ['size', 'suspend_timeout'];
  return groups
    .filter((group) => record.manual?.[group] !== undefined && fieldsOf(group, fields) !== undefined)
    .reduce((after, group) => withoutMark(withReversal(after, group, nowMs), group), record);
}
