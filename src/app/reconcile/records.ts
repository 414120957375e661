/** What the store keeps of a project's computes, brought up to date at the beginning of a reconcile. */

import type { Compute } from '../../domain/compute/compute.ts';
import { withCompliance } from '../../domain/evaluate/compliance.ts';
import type { EvaluatedCompute } from '../../domain/evaluate/evaluate.ts';
import { updatedRecord } from '../../domain/evaluate/updated-record.ts';
import { withWanted } from '../../domain/evaluate/wanted-since.ts';
import { withoutInstantsAhead } from '../../domain/overrides/instants-ahead.ts';
import { withoutDecided } from '../../domain/overrides/restore.ts';
import { describeManualChange, withAgreed } from '../../domain/plan/manual-changes.ts';
import { type ComputeRecord, firstRecord } from '../../domain/records/compute-record.ts';
import { RECOVERY } from '../../domain/records/recovery-times.ts';
import type { ReportEvent } from '../../ports/compute-events.ts';
import type { Lease, Store } from '../../ports/store.ts';
import { reportDegraded } from '../apply/apply.ts';
import { type AuditDeps, auditOfConfirmed } from '../apply/audit.ts';
import type { EvaluateProjectDeps } from '../evaluate/evaluate.ts';
import type { CachedProject, Fleet } from '../fleet/fleet.ts';
import { recordAbsent, withoutAbsence } from '../fleet/forget-project.ts';
import { knownRecord } from '../fleet/known-records.ts';
import { ownersNow } from '../fleet/owner-now.ts';
import { isCorrected } from '../group/stored-times.ts';
import { recordEntries } from '../notifications/notify.ts';
import { confirmPendingWrites, type PendingWriteDeps } from './pending-writes.ts';

export interface RecordsDeps extends EvaluateProjectDeps, PendingWriteDeps, AuditDeps {
  store: Store;
  fleet: Fleet;
}

/** Records as the store has them, with those of newly discovered computes, pending writes confirmed, and those absent for long forgotten. */
export async function currentRecords(
  deps: RecordsDeps,
  lease: Lease,
  cachedProject: CachedProject,
  stored: ReadonlyMap<string, ComputeRecord>,
  signal: AbortSignal,
): Promise<Map<string, ComputeRecord>> {
  const { store, mode, overrides } = deps;
  const { policies, manualChanges } = deps.rules.current;
  const nowMs = deps.clock.now();
  const { projectId } = cachedProject.project;
  const situation = {
    ...{ policies, manualChanges, nowMs, readAtMs: cachedProject.readAtMs },
    ...(mode === 'enforce' && { enforcedSinceMs: nowMs }),
  };
  const records = new Map<string, ComputeRecord>();
  const broken = await store.brokenRecords();
  for (const compute of cachedProject.computes) {
    // Without its record nobody knows what it had before ebb, nor what is under way.
    if (broken.has(compute.computeId)) continue;
    // A store that has lost it must not make ebb take for the baseline what it has applied itself.
    const known = knownRecord(deps, stored, compute.computeId) ?? firstRecord(compute, nowMs);
    // What this daemon remembers itself may be of a clock that was ahead and has been set right.
    const before = withoutAbsence(withoutInstantsAhead(known, nowMs).record);
    const options = { signal, deadlineMs: RECOVERY.readMs };
    const answered = await confirmPendingWrites(deps, before, compute, options);
    const after = updatedRecord(answered, compute, { ...situation, holds: overrides.holds });
    const inStore = stored.get(compute.computeId);
    const isNews = after !== inStore || isCorrected(inStore);
    const audit = auditOfConfirmed(deps, compute, { before, after: answered, nowMs });
    const outbox = isNews ? recordEntries(deps.rules.current, { compute, before, after, nowMs }, ownersNow(deps)) : [];
    const also = { outbox, ...(audit && { audit }) };
    if (isNews && !(await store.putRecord(projectId, compute.computeId, after, lease, also))) {
      throw new Error(`the lease on project ${projectId} was lost while it was reconciled`);
    }
    reportDegraded(deps, compute, before, after);
    reportRenamed(deps, compute, before, after);
    records.set(compute.computeId, after);
  }
  await recordAbsent(deps, lease, cachedProject, stored);
  return records;
}

/**
 * Where the compute has what policies want by now, it is ebb's own from then on, no matter who has set it; and what is wanted is
 * remembered. What is about to be written is stored with its intent.
 */
export async function recordWanted(
  deps: RecordsDeps,
  lease: Lease,
  evaluatedComputes: EvaluatedCompute[],
): Promise<EvaluatedCompute[]> {
  if (deps.mode === 'observe') return evaluatedComputes;
  const { overrides } = deps;
  const { policies } = deps.rules.current;
  const remembered: EvaluatedCompute[] = [];
  for (const evaluatedCompute of evaluatedComputes) {
    const { compute, decision, plan } = evaluatedCompute;
    const { baseline, trials } = evaluatedCompute.record;
    const agreed = withAgreed(withoutDecided(evaluatedCompute.record, decision), compute, decision);
    const remembering = withWanted({
      policies,
      compute,
      baseline,
      trials,
      holds: overrides.holds,
      decision,
      record: agreed,
    });
    const record = withCompliance(policies, compute, remembering, decision);
    if (record !== evaluatedCompute.record && plan.verdict !== 'act') {
      await deps.store.putRecord(compute.projectId, compute.computeId, record, lease);
    }
    remembered.push(record === evaluatedCompute.record ? evaluatedCompute : { ...evaluatedCompute, record });
  }
  return remembered;
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
  fleet: Fleet;
  reportEvent: ReportEvent;
}

/** Says it when a change by hand is first seen; until when it is respected, only where policies want something else. */
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
