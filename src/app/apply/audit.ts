import { type Compute, hasSettings } from '../../domain/compute/compute.ts';
import type { EvaluatedCompute } from '../../domain/evaluate/evaluate.ts';
import { type Action, whyOf } from '../../domain/plan/plan.ts';
import type { ComputeRecord } from '../../domain/records/compute-record.ts';
import { type HistoryEntry, unknownOutcome } from '../../domain/records/history.ts';
import type { WriteOutcome } from '../../ports/compute-events.ts';
import type { ControlApiError } from '../../ports/control-api.ts';
import type { Caller } from '../../ports/operator.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { ownerByCurrentRules } from '../fleet/owner-now.ts';
import type { CurrentRules } from '../rules.ts';
import { changeOf, decidedBy } from '../telemetry/history.ts';

export interface AuditDeps {
  rules: CurrentRules;
  fleet: Pick<Fleet, 'cachedProject'>;
  /** The person whose command writes; absent for a daemon. */
  caller?: Caller | undefined;
}

/** A request to the control API, and what became of it. */
export interface Written {
  evaluatedCompute: EvaluatedCompute;
  action: Action;
  outcome: WriteOutcome;
  error: ControlApiError | undefined;
  requestId: string;
  atMs: number;
}

/** Returns the audit entry of a request. `sent` is the record with its pending write. */
export function auditOfWrite(deps: AuditDeps, write: Written, sent: Pick<ComputeRecord, 'intent'> = {}): HistoryEntry {
  const { action, outcome, error, requestId, atMs } = write;
  const { compute, plan } = write.evaluatedCompute;
  const what = outcome === 'unknown' ? unknownOutcome(error?.status) : `not changed: ${outcome}`;
  const failedReason = { code: outcome, message: `${what}${error ? `: ${error.message}` : ''}` };
  return {
    ...entryOf(deps, compute, action.kind === 'restart' ? 'restart' : 'write'),
    ...changeOf(compute, action),
    atMs,
    requestId: error?.requestId ?? requestId,
    reasons: [...whyOf(plan, action), ...(outcome === 'applied' ? droppedBy(sent) : [failedReason])],
  };
}

/** Returns the audit entry of a pending write that was confirmed, so that only `before` has it; undefined if there is none. */
export function auditOfConfirmed(
  deps: AuditDeps,
  compute: Compute,
  { before, after, nowMs }: { before: ComputeRecord; after: ComputeRecord; nowMs: number },
): HistoryEntry | undefined {
  const { intent } = before;
  if (!intent || after.intent) return undefined;
  const { fields, policy, requestId } = intent;
  // A restart that did not take effect is counted as a failure.
  const tookEffect = fields ? hasSettings(compute, fields) : after.failures === before.failures;
  const message = `no clear answer came, and it ${tookEffect ? 'took effect' : 'did not take effect'}`;
  return {
    ...entryOf(deps, compute, intent.restart ? 'restart' : 'write'),
    ...(policy !== undefined && { policy }),
    ...(fields && { to: fields }),
    ...(requestId !== undefined && { requestId }),
    atMs: nowMs,
    reasons: [...(tookEffect ? droppedBy(before) : []), { code: 'confirmed', message }],
  };
}

/** Returns a reason that counts the clients which the pending write disconnected; no reason if there were none, or their number is unknown. */
function droppedBy({ intent }: Pick<ComputeRecord, 'intent'>): HistoryEntry['reasons'] {
  const dropped = intent?.dropped ?? 0;
  const message = `its clients were disconnected (${dropped} when last counted)`;
  return dropped > 0 ? [{ code: 'clients_disconnected', message }] : [];
}

function entryOf(deps: AuditDeps, compute: Compute, kind: HistoryEntry['kind']) {
  const { projectId, computeId } = compute;
  const { rules, caller } = deps;
  const owner = ownerByCurrentRules(deps)(compute);
  return { projectId, computeId, kind, ...decidedBy(rules), ...caller, owner };
}
