import { step } from '../../common/errors.ts';
import { type Compute, groupOf, settingsOf } from '../../domain/compute/compute.ts';
import type { Reason } from '../../domain/compute/reasons.ts';
import { connectionsAt } from '../../domain/connections/connections.ts';
import {
  causingSet,
  changeDueSince,
  type EvaluatedCompute,
  restartCause,
  type Situation,
} from '../../domain/evaluate/evaluate.ts';
import { hasOperationRunning } from '../../domain/plan/gates/earlier-writes.ts';
import { type Action, whyOf } from '../../domain/plan/plan.ts';
import { shortHash } from '../../domain/policy/policy.ts';
import type { ComputeRecord, Intent, RestartCause } from '../../domain/records/compute-record.ts';
import { CALL_MS, RECOVERY } from '../../domain/records/recovery-times.ts';
import { isoInstant } from '../../domain/time/units.ts';
import type { NewId } from '../../ports/clock.ts';
import type { ReportEvent, WriteOrigin, WriteOutcome } from '../../ports/compute-events.ts';
import type { ControlApi, ControlApiError, Operation, Permit } from '../../ports/control-api.ts';
import type { DecidedBy, IntentOutcome, Lease, Store } from '../../ports/store.ts';
import type { Telemetry } from '../../ports/telemetry.ts';
import { type EvaluateDeps, evaluateCompute, situationOf } from '../evaluate-project/evaluate.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { ownerByCurrentRules } from '../fleet/owner-now.ts';
import { recordEntries } from '../notifications/notify.ts';
import { reportDegraded } from '../operations/degraded.ts';
import { SLOT_RETRY_MS, type Slots, type TakenSlot } from '../operations/restart-slots.ts';
import type { KnownOverrides } from '../overrides.ts';
import { reportWriteError } from '../telemetry/outages.ts';
import { auditOfWrite, type Written } from './audit.ts';
import type { DueWrite } from './due-writes.ts';
import { outcomeOf, recordAfter, type WriteAnswer, type WriteResult } from './record-update.ts';
import { announcementOfRestart, type RestartReason, type ToldBeforeDeps } from './told-before.ts';

/**
 * The delays before changes that were not made are tried again, by outcome, in milliseconds. For a refused change, a gate sets the delay
 * instead (domain/plan/gates/earlier-writes.ts).
 */
const RETRY_AFTER_MS: Partial<Record<WriteOutcome, number>> = {
  locked: 5_000,
  throttled: 5_000,
  failed: 20_000,
  unknown: 5_000,
};

export interface ApplyDeps extends EvaluateDeps, ToldBeforeDeps {
  api: ControlApi;
  store: Store;
  fleet: Fleet;
  overrides: KnownOverrides;
  telemetry: Telemetry;
  reportEvent: ReportEvent;
  slots: Slots;
  newId: NewId;
  /** Called before each write. If it rejects, nothing is written either. */
  mayWrite(): Promise<{ ok: true } | { ok: false; reason: Reason }>;
}

export interface ApplyResult {
  /** False if nothing more may be written to this project now. */
  mayContinue: boolean;
  /** True if nothing was sent because a hold, a freeze or the policy set has changed since the decision: decide again. */
  isOutdated?: true;
  /** Set if the project should be reconciled again after this many milliseconds: a change was not made, or another one is due. */
  retryAfterMs?: number;
  /** The outcome of the request; absent if nothing was sent. */
  result?: { outcome: WriteOutcome; error?: ControlApiError };
}

interface WriteOptions {
  /** The versions of overrides and policy set behind the decision. If the group has changed one of them, nothing is sent. */
  decidedBy: DecidedBy;
  boundaryMs?: number | undefined;
  dueWrite?: DueWrite | undefined;
  /** Permits of the rate budget that were obtained in advance. */
  permits?: { updateCompute?: Permit | undefined; restartCompute?: Permit | undefined };
}

/**
 * Writes one change: stores the pending write, sends the request, stores the record. If the daemon dies after the first step, the next
 * daemon finds the pending write and reads the compute before it sends anything. Nothing is sent without the lease.
 */
export async function applyAction(
  deps: ApplyDeps,
  lease: Lease,
  evaluatedCompute: EvaluatedCompute,
  { decidedBy, boundaryMs, dueWrite, permits = {} }: WriteOptions,
): Promise<ApplyResult> {
  const { compute, plan } = evaluatedCompute;
  const action = plan.actions[0];
  if (!action) return { mayContinue: true };
  const { obstacle, slot } = await obstacleTo(deps, evaluatedCompute, action);
  if (obstacle) return obstacle;
  const requestedMs = deps.clock.monotonicMs();
  const requestId = deps.newId();
  // Determined before the request: another policy set may become current before the answer.
  const restart = restartReason(deps, evaluatedCompute, action);
  const { intended, outcome: stored } = await step('storing the pending write', () =>
    storeIntent(deps, lease, evaluatedCompute, { action, restart, requestId, decidedBy }),
  );
  // The lease may have begun anew as early as `requestedMs`. Since then this process may have been suspended.
  const pendingStoredMs = deps.clock.monotonicMs();
  const deadlineMs = CALL_MS - (pendingStoredMs - requestedMs);
  if (stored !== 'stored' || deadlineMs < RECOVERY.shortestCallMs) {
    return abandonWrite(deps, lease, evaluatedCompute, { slot, stored });
  }
  dueWrite?.sent();
  deps.reportEvent({ kind: 'write_started', compute, action, reasons: whyOf(plan, action), origin: originOf(deps) });
  const answer = await step('sending the change', () =>
    send(deps, compute, action, { deadlineMs, permits, requestId }),
  );
  const answeredMs = deps.clock.now();
  const latenessMs = boundaryMs === undefined ? undefined : Math.max(0, answeredMs - boundaryMs);
  await dueWrite?.endAndYield(Math.max(0, deadlineMs - (deps.clock.monotonicMs() - pendingStoredMs)));
  const outcome = outcomeOf(answer);
  if (answer.ok) deps.fleet.changedAtMs.set(compute.projectId, answeredMs);
  const made = madeChangeOf(deps, evaluatedCompute, { action, restart }, answer);
  const record = recordAfter(intended, made.action, answer, answeredMs);
  if (action.disconnects && record.openOperations.length === 0 && outcome !== 'unknown') {
    await deps.slots.release(compute.computeId, action.policy);
  }
  const error = answer.ok ? undefined : answer.error;
  const written = { evaluatedCompute, action, outcome, error, requestId, atMs: answeredMs };
  await step('storing what became of it', () =>
    storeResult(deps, lease, evaluatedCompute, { made, before: intended, after: record, answer, written }),
  );
  warnOfRestart(deps, compute, made);
  reportResult(deps, evaluatedCompute, made.action, answer, { latenessMs, cause: made.restart.counted });
  reportDegraded(deps, compute, intended, record);
  const mayContinue = outcome === 'refused' || (answer.ok && answer.value.operations.length === 0);
  const retryAfterMs = mayContinue ? nextWriteAfterMs(deps, compute) : RETRY_AFTER_MS[outcome];
  return {
    mayContinue,
    result: { outcome, ...(error && { error }) },
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  };
}

/**
 * Returns 0 if another write to the compute is due at once: the other group of fields, or each group by itself after both were refused
 * together. Nothing else triggers that write, since no operation runs whose end would trigger it.
 */
function nextWriteAfterMs({ fleet }: ApplyDeps, { computeId }: Compute): 0 | undefined {
  return fleet.ownEvaluation(computeId)?.plan.verdict === 'act' ? 0 : undefined;
}

/**
 * Returns the first obstacle to the write, or the slot that was taken for it. Changed holds, freezes and policy sets are found later, when
 * the pending write is stored. The slot is taken last, since it has to be given back.
 */
async function obstacleTo(
  deps: ApplyDeps,
  evaluatedCompute: EvaluatedCompute,
  action: Action,
): Promise<{ obstacle?: ApplyResult; slot?: TakenSlot }> {
  const permission = await deps.mayWrite();
  if (!permission.ok) {
    // No retry is needed: a daemon that may write again reconciles all projects.
    deps.telemetry.metrics.increment('ebb_skipped_total', { reason: permission.reason.code });
    return { obstacle: { mayContinue: false } };
  }
  if (!action.disconnects) return {};
  const slot = await deps.slots.take(deps.rules.current, evaluatedCompute.compute.computeId, action);
  return slot ? { slot } : { obstacle: { mayContinue: true, retryAfterMs: SLOT_RETRY_MS } };
}

/** Gives up a write before it is sent: frees the slot, and removes the pending write, which would look like a change without an answer. */
async function abandonWrite(
  deps: ApplyDeps,
  lease: Lease,
  { compute, record }: EvaluatedCompute,
  { slot, stored }: { slot: TakenSlot | undefined; stored: IntentOutcome },
): Promise<ApplyResult> {
  if (stored === 'stored') await deps.store.putRecord(compute.projectId, compute.computeId, record, lease);
  await slot?.giveBack();
  if (stored === 'outdated') return { mayContinue: false, isOutdated: true };
  return { mayContinue: false, retryAfterMs: RECOVERY.shortestCallMs };
}

interface CountedReason extends RestartReason {
  /** The cause that metrics count. It is `person` if a person approved the policy set that caused an otherwise unplanned restart. */
  counted?: RestartCause;
}

function restartReason(deps: ApplyDeps, evaluatedCompute: EvaluatedCompute, action: Action): CountedReason {
  if (!action.disconnects) return {};
  const situation = situationAtDecision(deps, evaluatedCompute);
  const { decision, plan } = evaluatedCompute;
  const ofAction = { decision, plan: { ...plan, actions: [action], why: whyOf(plan, action) } };
  const cause = restartCause(situation, ofAction);
  const set = deps.caller ? undefined : causingSet(situation, ofAction, deps.rules.current.becameCurrent);
  if (!set) return { cause, counted: cause };
  const { hash, currentSinceMs, approver } = set;
  const by = approver ? `, approved by ${approver.who}` : '';
  const why = `policy set ${shortHash(hash)} became current at ${isoInstant(currentSinceMs)}${by}`;
  return { cause, why, approvedAtMs: approver?.atMs, counted: cause === 'other' && approver ? 'person' : cause };
}

/** Returns the situation of an evaluated compute at the instant of its decision, by the present rules. */
function situationAtDecision(deps: ApplyDeps, evaluatedCompute: EvaluatedCompute): Situation {
  const { instantMs: nowMs } = evaluatedCompute.decision;
  return { ...situationOf(deps, { ...evaluatedCompute, projectBusy: false }), nowMs };
}

function originOf({ rules }: ApplyDeps): WriteOrigin {
  const { policies, revision } = rules.current;
  return { set: policies.set.hash, ...(revision !== undefined && { revision }) };
}

/** Sends a PATCH or a restart: the only requests of the daemon that change anything. */
function send(
  { api }: ApplyDeps,
  { projectId, computeId }: Compute,
  action: Action,
  { permits, ...call }: { deadlineMs: number; permits: NonNullable<WriteOptions['permits']>; requestId: string },
) {
  const options = { ...call, priority: action.raises ? 'raise' : 'lowering' } as const;
  if (action.kind === 'restart') {
    return api.restartCompute(projectId, computeId, { ...options, permit: permits.restartCompute });
  }
  return api.updateCompute(projectId, computeId, action.fields, { ...options, permit: permits.updateCompute });
}

async function storeIntent(
  deps: ApplyDeps,
  lease: Lease,
  evaluated: EvaluatedCompute,
  {
    action,
    restart,
    requestId,
    decidedBy,
  }: { action: Action; restart: RestartReason; requestId: string; decidedBy: DecidedBy },
): Promise<{ intended: ComputeRecord; outcome: IntentOutcome }> {
  const { compute, record } = evaluated;
  const atMs = deps.clock.now();
  const dropped = action.disconnects ? connectionsAt(deps.samples.historyOf(compute.computeId), compute, atMs) : 0;
  // An urgent raise can't be announced.
  const needsAnnouncement = dropped !== 0 && !action.urgent;
  const announced = needsAnnouncement ? await announcementFields(deps, evaluated, action, restart) : {};
  const change =
    action.kind === 'restart' ? { restart: true as const } : { fields: action.fields, before: settingsOf(compute) };
  const intent = {
    ...change,
    atMs,
    policy: action.policy,
    requestId,
    ...(dropped && { dropped }),
    ...(action.urgent && { urgent: true as const }),
    ...announced,
  };
  const lastDecidedAtMs = Math.max(atMs, record.lastDecidedAtMs);
  const intended = { ...record, intent, lastDecidedAtMs, lastSentAtMs: atMs };
  const { projectId, computeId } = compute;
  const leaseOptions = { ttlMs: RECOVERY.leaseMs, decidedBy };
  return { intended, outcome: await deps.store.putIntent(projectId, computeId, intended, lease, leaseOptions) };
}

/** Returns the fields of a pending write that say whether its restart was announced in time; see {@link announcementOfRestart}. */
function announcementFields(
  deps: ApplyDeps,
  evaluated: EvaluatedCompute,
  action: Action,
  restart: RestartReason,
): Promise<Partial<Intent>> {
  const { fields, raises } = action;
  const dueSinceMs = () => changeDueSince(situationAtDecision(deps, evaluated), { group: groupOf(fields), raises });
  return announcementOfRestart(deps, evaluated, action, { ...restart, dueSinceMs });
}

/** A change that was made, and why it restarts its compute. */
interface MadeChange {
  /** The planned action; `disconnects` is corrected by the answer. */
  action: Action;
  restart: CountedReason;
  /** Set if only the answer showed the restart: the compute had woken since it was read, or a new timeout restarted it. */
  isUnexpected?: true;
}

function madeChangeOf(
  deps: ApplyDeps,
  evaluated: EvaluatedCompute,
  planned: MadeChange,
  answer: WriteAnswer,
): MadeChange {
  if (planned.action.disconnects || !answer.ok || !isRestart(answer.value.operations)) return planned;
  const action = { ...planned.action, disconnects: true };
  return { action, restart: restartReason(deps, evaluated, action), isUnexpected: true };
}

/** Returns true if these operations suspend a running compute and start it again. For a sleeping compute the start comes first. */
function isRestart(operations: readonly Operation[]): boolean {
  const suspended = operations.findIndex(({ action }) => action === 'suspend_compute');
  return suspended >= 0 && operations.slice(suspended).some(({ action }) => action === 'start_compute');
}

/** Adds the fields that the pending write would have had if the restart had been expected. */
async function withUnexpectedRestart(
  deps: ApplyDeps,
  evaluated: EvaluatedCompute,
  { action, restart }: MadeChange,
  intended: ComputeRecord,
): Promise<ComputeRecord> {
  if (!intended.intent) return intended;
  const { computeId, state } = evaluated.compute;
  // Connections that were counted before the compute woke are outdated.
  const history = state === 'active' ? deps.samples.historyOf(computeId) : undefined;
  const dropped = connectionsAt(history, { ...evaluated.compute, state: 'active' }, intended.intent.atMs);
  if (dropped === 0) return intended;
  const announced = await announcementFields(deps, evaluated, action, restart);
  return { ...intended, intent: { ...intended.intent, ...(dropped && { dropped }), ...announced } };
}

/**
 * Evaluates again, and stores the record with its audit entry. If the store fails, the write stays pending, both in this daemon's memory and in
 * the store. A later reading confirms it, as after a kill. If the lease was lost, only the stored record tells whether the write is pending.
 */
async function storeResult(
  deps: ApplyDeps,
  lease: Lease,
  evaluated: EvaluatedCompute,
  {
    made,
    before,
    after,
    answer,
    written,
  }: { made: MadeChange; before: ComputeRecord; after: ComputeRecord; answer: WriteAnswer; written: Written },
): Promise<void> {
  const compute = answer.ok ? withAnswer(evaluated.compute, answer.value) : evaluated.compute;
  const { projectId, computeId } = compute;
  const projectBusy = deps.fleet
    .ownEvaluations(projectId)
    .some((other) => other.compute.computeId !== computeId && hasOperationRunning(other.compute, other.record));
  const remember = (record: ComputeRecord) =>
    deps.fleet.putEvaluated(evaluateCompute(deps, { compute, record, projectBusy }));
  remember(after);
  try {
    const sent = made.isUnexpected ? await withUnexpectedRestart(deps, evaluated, made, before) : before;
    const audit = auditOfWrite(deps, written, sent);
    const change = { compute, before: sent, after, nowMs: deps.clock.now() };
    const outbox = recordEntries(deps.rules.current, change, ownerByCurrentRules(deps));
    if (await deps.store.putRecord(projectId, computeId, after, lease, { audit, outbox })) return;
    // Another daemon may have confirmed the write by now. The earlier `lastSentAtMs` makes `knownRecord` prefer a record in the store.
    remember({ ...after, lastSentAtMs: before.lastSentAtMs ?? 0 });
    await deps.store.appendHistory([audit]);
  } catch (error) {
    remember(before);
    throw error;
  }
  const fields = { event: 'ebb.lease_lost', project: projectId, compute: computeId };
  deps.telemetry.log.warn(fields, 'the lease was lost during a write; the next daemon confirms the pending write');
}

function withAnswer(before: Compute, { settings, state, pendingState }: WriteResult): Compute {
  if (state === undefined) return before;
  const { pendingState: _before, ...rest } = before;
  return { ...rest, ...settings, state, ...(pendingState !== undefined && { pendingState }) };
}

function reportResult(
  deps: ApplyDeps,
  { compute, plan }: EvaluatedCompute,
  action: Action,
  answer: WriteAnswer,
  { latenessMs, cause }: { latenessMs: number | undefined; cause: RestartCause | undefined },
): void {
  if (answer.ok) deps.outages.projectAnswers(compute, 'write');
  else reportWriteError(deps, compute, answer.error);
  deps.reportEvent({
    kind: 'write_ended',
    compute,
    action,
    reasons: whyOf(plan, action),
    outcome: outcomeOf(answer),
    operations: answer.ok ? answer.value.operations : [],
    origin: originOf(deps),
    ...(!answer.ok && { error: answer.error }),
    ...(latenessMs !== undefined && { latenessMs }),
    ...(cause !== undefined && { restartCause: cause }),
  });
}

/** Warns once for each account if a new timeout alone restarts an awake compute although `verified` or the default says otherwise. */
function warnOfRestart(
  { fleet, telemetry }: ApplyDeps,
  { account, projectId: project, computeId, state }: Compute,
  { action: { kind, fields }, isUnexpected }: MadeChange,
): void {
  const isTimeoutAlone = kind === 'update' && fields.maxCu === undefined && state === 'active';
  if (!isUnexpected || !isTimeoutAlone) return;
  if (fleet.warnedOfTimeoutRestarts.has(account)) return;
  fleet.warnedOfTimeoutRestarts.add(account);
  const named = { event: 'ebb.timeout_restarts', account, project, compute: computeId };
  const remedy = `run ebb verify, or set timeout_change: restarts in verified of account ${account}`;
  telemetry.log.warn(named, `a new timeout alone has restarted ${computeId}: ${remedy}`);
}
