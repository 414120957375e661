/** Brings the stored records of a project's computes up to date, before and after they are evaluated. */

import { type Compute, FIELD_GROUPS, fieldsOf, hasSettings } from '../../domain/compute/compute.ts';
import type { Decision } from '../../domain/decide/decide.ts';
import type { EvaluatedCompute } from '../../domain/evaluate/evaluate.ts';
import { withCompliance } from '../../domain/evaluate/trials.ts';
import { updatedRecord } from '../../domain/evaluate/updated-record.ts';
import { withWanted } from '../../domain/evaluate/wanted-since.ts';
import { holdsAt } from '../../domain/overrides/holds.ts';
import { withoutInstantsAhead } from '../../domain/overrides/instants-ahead.ts';
import { restoreAt, restoreFields, withoutDecided } from '../../domain/overrides/restore.ts';
import { describeManualChange, withAgreed } from '../../domain/plan/manual-changes.ts';
import { mayBeOfUnloadedTeam, unloadedTeamOf } from '../../domain/policy/team-parts.ts';
import { type ComputeRecord, decidingFacts, firstRecord } from '../../domain/records/compute-record.ts';
import { confirmWrite } from '../../domain/records/failures.ts';
import { withoutDeadFloors } from '../../domain/records/lowerings.ts';
import { RECOVERY } from '../../domain/records/recovery-times.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ReportEvent } from '../../ports/compute-events.ts';
import type { CallOptions, ControlApi, Operation } from '../../ports/control-api.ts';
import type { Lease, Store } from '../../ports/store.ts';
import type { ApplyDeps } from '../apply/apply.ts';
import { type AuditDeps, auditOfConfirmed } from '../apply/audit.ts';
import type { EvaluateProjectDeps } from '../evaluate-project/evaluate.ts';
import type { CachedProject, Fleet } from '../fleet/fleet.ts';
import { recordAbsent, withoutAbsence } from '../fleet/forget-project.ts';
import { ownerByCurrentRules } from '../fleet/owner-now.ts';
import { isCorrected } from '../group/stored-times.ts';
import { recordEntries } from '../notifications/notify.ts';
import { reportDegraded } from '../operations/degraded.ts';
import { CLOCK_TOLERANCE_MS } from '../operations/follow.ts';
import type { Slots } from '../operations/restart-slots.ts';
import { type OutageDeps, reportApiError } from '../telemetry/outages.ts';

export interface PendingWriteDeps extends OutageDeps {
  api: ControlApi;
  clock: Clock;
}

export interface RecordsDeps extends EvaluateProjectDeps, PendingWriteDeps, AuditDeps {
  store: Store;
  fleet: Fleet;
  slots: Slots;
  /** The number of the policy set in `rules`; undefined while nothing may be written by that set. */
  generation(): number | undefined;
  /** Refuses if these policies are not the newest of the group, or the clock is wrong. */
  mayWrite: ApplyDeps['mayWrite'];
}

/** Returns the records of a project's computes. Creates records of new computes, confirms pending writes, forgets computes absent for long. */
export async function currentRecords(
  deps: RecordsDeps,
  lease: Lease,
  cachedProject: CachedProject,
  stored: ReadonlyMap<string, ComputeRecord>,
  signal: AbortSignal,
): Promise<Map<string, ComputeRecord>> {
  const { store, overrides } = deps;
  const { policies, manualChanges } = deps.rules.current;
  const nowMs = deps.clock.now();
  const { projectId } = cachedProject.project;
  const { readAtMs } = cachedProject;
  const situation = { policies, manualChanges, nowMs, readAtMs, holds: overrides.holds };
  const records = new Map<string, ComputeRecord>();
  const broken = await store.brokenRecords();
  for (const compute of cachedProject.computes) {
    // An unreadable record may have a baseline and a pending write.
    if (broken.has(compute.computeId)) continue;
    // If the store has lost the record, ebb's own values must not become the baseline.
    const remembered = knownRecord(deps, stored, compute.computeId) ?? firstRecord(compute, nowMs);
    // This daemon's memory may have timestamps of a clock that was ahead and has been corrected.
    const before = withoutAbsence(withoutInstantsAhead(remembered, nowMs).record);
    const options = { signal, deadlineMs: RECOVERY.readMs, readAtMs };
    const confirmed = await confirmPendingWrite(deps, before, compute, options);
    const after = updatedRecord(confirmed, compute, { ...situation, ...enforcedAt(deps, compute, nowMs) });
    const inStore = stored.get(compute.computeId);
    if (after !== inStore || isCorrected(inStore)) {
      const audit = auditOfConfirmed(deps, compute, { before, after: confirmed, nowMs });
      const change = { compute, before, after, nowMs, holds: holdsAt(overrides.holds, compute, nowMs) };
      const outbox = recordEntries(deps.rules.current, change, ownerByCurrentRules(deps));
      const also = { outbox, ...(audit && { audit }) };
      if (!(await store.putRecord(projectId, compute.computeId, after, lease, also)))
        throw new Error(`the lease on project ${projectId} was lost while it was reconciled`);
    }
    const { intent } = before;
    // A restart's slot is released when its operations end. This write has no open operation, so that nothing else would release the slot.
    if (intent?.policy !== undefined && !after.intent && after.openOperations.length === 0)
      await deps.slots.release(compute.computeId, intent.policy);
    reportDegraded(deps, compute, before, after);
    reportRenamed(deps, compute, before, after);
    records.set(compute.computeId, after);
  }
  await recordAbsent(deps, lease, cachedProject, stored);
  return records;
}

/** Returns the field that enforcement begins now; no field if the compute's policies are not loaded, or {@link mayRecordWanted} is false. */
function enforcedAt(deps: RecordsDeps, compute: Compute, nowMs: number): { enforcedSinceMs?: number } {
  const isLoaded = unloadedTeamOf(deps.rules.current.policies, compute) === undefined;
  return isLoaded && mayRecordWanted(deps) ? { enforcedSinceMs: nowMs } : {};
}

/**
 * Returns the record of a compute: the stored one, unless the store has lost it or this daemon remembers a later write. A remembered write in
 * the future was sent while the clock was ahead; then the stored record is preferred, as it may be the later one.
 */
export function knownRecord(
  { fleet, clock }: { fleet: Pick<Fleet, 'ownEvaluation'>; clock: Pick<Clock, 'now'> },
  stored: ReadonlyMap<string, ComputeRecord>,
  computeId: string,
): ComputeRecord | undefined {
  const storedRecord = stored.get(computeId);
  const own = fleet.ownEvaluation(computeId)?.record;
  if (!storedRecord || !own) return storedRecord ?? own;
  const { lastSentAtMs = 0 } = own;
  return lastSentAtMs > (storedRecord.lastSentAtMs ?? 0) && lastSentAtMs <= clock.now() ? own : storedRecord;
}

/**
 * Confirms a change whose answer never arrived, as after a kill between the call and the record. If the change took effect, its operations are
 * found in Neon's list and followed like any others. While that is unknown, the pending write stays in the record. `readAtMs`: when the reading
 * of the compute began.
 */
async function confirmPendingWrite(
  deps: PendingWriteDeps,
  record: ComputeRecord,
  compute: Compute,
  { readAtMs, ...options }: CallOptions & { readAtMs: number },
): Promise<ComputeRecord> {
  const { intent } = record;
  const nowMs = deps.clock.now();
  const confirm = () => confirmWrite(record, compute, nowMs, readAtMs);
  const mayHaveTakenEffect = intent?.restart === true || (intent?.fields && hasSettings(compute, intent.fields));
  if (!intent || !mayHaveTakenEffect) return confirm();
  const operations = await operationsSince(deps, compute, intent.atMs - CLOCK_TOLERANCE_MS, options);
  if (!operations) return record;
  const { intent: _confirmed, ...withoutIntent } = record;
  // The operations of a restart show that it took effect.
  const confirmed: ComputeRecord = intent.restart && operations.length > 0 ? withoutIntent : confirm();
  // The write is not confirmed, since the reading may be too old. Operations that were adopted now would be adopted again after their end.
  if (confirmed.intent) return confirmed;
  const knownIds = new Set(confirmed.openOperations.map(({ operationId }) => operationId));
  const { atMs: startedAtMs, policy, fields } = intent;
  const cause = { startedAtMs, ...(policy !== undefined && { policy }), ...(fields && { fields }) };
  const adopted = operations
    .filter(({ operationId }) => !knownIds.has(operationId))
    .map(({ operationId, action }) => ({ operationId, action, ...cause }));
  return { ...confirmed, openOperations: [...confirmed.openOperations, ...adopted] };
}

/** Lists the compute's operations since an instant, newest first; undefined if they can't be listed. */
async function operationsSince(
  deps: PendingWriteDeps,
  compute: Compute,
  sinceMs: number,
  options: CallOptions,
): Promise<Operation[] | undefined> {
  const { projectId, computeId } = compute;
  const operations: Operation[] = [];
  for await (const page of deps.api.listOperations(projectId, options)) {
    if (!page.ok) {
      if (!options.signal?.aborted) reportApiError(deps, compute, page.error, 'operations');
      return undefined;
    }
    deps.outages.projectAnswers(compute, 'operations');
    for (const operation of page.value) {
      if (operation.createdAtMs < sinceMs) return operations;
      if (operation.computeId === computeId) operations.push(operation);
    }
  }
  return operations;
}

/**
 * Records what the decisions say: which policies set fields, which settings are wanted, and how trials are complied with. Wanted settings that
 * a compute has count as applied by ebb, whoever set them. If a change is about to be made, its pending write stores the record.
 */
export async function recordWanted(
  deps: RecordsDeps,
  lease: Lease,
  evaluatedComputes: EvaluatedCompute[],
): Promise<EvaluatedCompute[]> {
  const { overrides } = deps;
  const { policies } = deps.rules.current;
  const mayRecord = mayRecordWanted(deps);
  const recorded: EvaluatedCompute[] = [];
  for (const evaluatedCompute of evaluatedComputes) {
    const { compute, decision, plan, record: before } = evaluatedCompute;
    let record = withSetBy(before, compute, decision, deps);
    if (mayRecord) {
      record = await dropDeadFloors(deps, record);
      const input = { policies, compute, ...decidingFacts(before), holds: overrides.holds, decision };
      const wanted = withWanted({ ...input, record: withAgreed(record, compute, decision) });
      record = withCompliance(policies, compute, wanted, decision);
    }
    const isDropped = record.restore !== before.restore;
    if (record !== before && (plan.verdict !== 'act' || isDropped)) {
      const isStored = await deps.store.putRecord(compute.projectId, compute.computeId, record, lease);
      if (isStored && isDropped) reportDropped(deps, evaluatedCompute, record);
    }
    recorded.push(record === before ? evaluatedCompute : { ...evaluatedCompute, record });
  }
  return recorded;
}

/**
 * Returns false in observe mode, and while the daemon has no generation. Rules without a generation may lack policies of teams, or be replaced in
 * a moment: if the values that they want were recorded, a person's value could count as agreed, and the next rules would overwrite it.
 */
function mayRecordWanted({ mode, generation }: Pick<RecordsDeps, 'mode' | 'generation'>): boolean {
  return mode === 'enforce' && generation() !== undefined;
}

/** Drops floors of policies that are gone, unless this daemon's policies are not the newest of its group. */
async function dropDeadFloors(deps: RecordsDeps, record: ComputeRecord): Promise<ComputeRecord> {
  const { set } = deps.rules.current.policies;
  const exists = (name: string) =>
    set.policies.some((policy) => policy.name === name) || mayBeOfUnloadedTeam(set, name);
  const living = withoutDeadFloors(record, exists);
  return living === record || (await deps.mayWrite()).ok ? living : record;
}

/**
 * Records which policies set which fields, and removes fields from a restore request that are restored or that policies decide. Changes nothing
 * while an enforcing daemon has no generation, since its policies may never become current.
 */
function withSetBy(record: ComputeRecord, compute: Compute, decision: Decision, deps: RecordsDeps): ComputeRecord {
  if (deps.mode === 'enforce' && !mayRecordWanted(deps)) return record;
  const remaining = withoutDecided(record, compute, decision);
  const { setBy } = decision;
  if (FIELD_GROUPS.every((group) => remaining.setBy?.[group] === setBy[group])) return remaining;
  const { setBy: _before, ...rest } = remaining;
  return Object.keys(setBy).length > 0 ? { ...rest, setBy } : rest;
}

/** Reports the fields of a restore request that will not be restored, except those that already have their baseline. */
function reportDropped({ telemetry }: RecordsDeps, evaluated: EvaluatedCompute, after: ComputeRecord): void {
  const { compute, decision, record: before } = evaluated;
  const { baseline } = before;
  const { projectId: project, computeId } = compute;
  const keptGroups = restoreFields(after);
  const fields = restoreFields(before).filter(
    (group) => !keptGroups.includes(group) && !hasSettings(compute, fieldsOf(group, baseline) ?? {}),
  );
  if (fields.length === 0 || !before.restore) return;
  const { owner } = before.restore;
  const why = fields.map((group) => {
    const name = group === 'size' ? 'size' : 'timeout';
    const policy = decision.setBy[group];
    if (policy !== undefined) return `policy ${policy} sets its ${name}`;
    const isExpired = restoreAt(before, decision.instantMs) === undefined;
    return isExpired ? `its ${name} could not go back within a day` : 'it is too large to have a timeout';
  });
  telemetry.log.warn(
    { event: 'ebb.restore_dropped', project, compute: computeId, fields, owner },
    `the restore of ${computeId} that ${owner} asked for is dropped: ${why.join(', ')}`,
  );
}

function reportRenamed(
  { telemetry }: RecordsDeps,
  { projectId: project, projectName: to, computeId: compute }: Compute,
  before: ComputeRecord,
  { renamed }: ComputeRecord,
): void {
  if (!renamed || renamed.atMs === before.renamed?.atMs) return;
  const { from, by } = renamed;
  telemetry.metrics.increment('ebb_renamed_into_scope_total', {});
  telemetry.log.warn(
    { event: 'ebb.project_renamed', project, compute, from, to, policies: by },
    `project ${project} is now called "${to}", not "${from}", so ${by.join(', ')} selects ${compute}: nothing is changed before its next boundary`,
  );
}

interface ManualChangeDeps {
  clock: Clock;
  fleet: Fleet;
  reportEvent: ReportEvent;
}

/** Reports a manual change when it is first seen. The message says how long it is respected if policies want something else. */
export function reportManualChanges(
  deps: ManualChangeDeps,
  stored: ReadonlyMap<string, ComputeRecord>,
  { compute, record, plan }: EvaluatedCompute,
): void {
  const before = knownRecord(deps, stored, compute.computeId);
  for (const group of ['size', 'suspend_timeout'] as const) {
    const mark = record.manual?.[group];
    if (!mark || mark.seenAtMs === before?.manual?.[group]?.seenAtMs) continue;
    const { lastApplied: applied } = record;
    const change = describeManualChange(group, applied, mark.fields);
    const respected = plan.waiting.find(
      ({ gate: { code, message } }) => code === 'manual_change' && message.startsWith(change),
    );
    deps.reportEvent({ kind: 'manual_change', compute, group, applied, message: respected?.gate.message ?? change });
  }
}
