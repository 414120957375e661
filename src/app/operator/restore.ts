import { FIELD_GROUPS, type FieldGroup, hasSettings } from '../../domain/compute/compute.ts';
import { withRestore } from '../../domain/overrides/restore.ts';
import type { ComputeRecord } from '../../domain/records/compute-record.ts';
import type { RestoreDocument } from '../../ports/documents.ts';
import type { ComputeBaseline, OperatorResult, RestoreRequest } from '../../ports/operator.ts';
import { changeRecords, projectBusy } from './change-records.ts';
import { baselineProblem, ownerProblem } from './check-request.ts';
import { settingsDocument } from './documents.ts';
import { findCompute } from './find-compute.ts';
import { fail, type OperatorParts } from './parts.ts';

type Restored = RestoreDocument['computes'][number];

/**
 * Stores the request that computes go back to their baseline, or to the one that the request brings. It is applied like every other
 * change, by a daemon or by `ebb apply`, where no policy sets a value.
 */
export async function restore(parts: OperatorParts, request: RestoreRequest): Promise<OperatorResult<RestoreDocument>> {
  const { baselines = [] } = request;
  const problem = ownerProblem(request.owner) ?? baselineProblem(baselines);
  if (problem !== undefined) return fail('invalid', problem);
  const wanted = await wantedComputes(parts, request);
  if (!wanted.ok) return wanted;
  const computes: Restored[] = [];
  for (const [projectId, computeIds] of wanted.value) {
    const restored = await restoreProject(parts, { projectId, computeIds, ...request });
    if (!restored) return fail('busy', projectBusy(projectId));
    computes.push(...restored);
  }
  return { ok: true, value: { computes } };
}

/** By project, the computes; undefined for all of them. */
type Wanted = Map<string, Set<string> | undefined>;

async function wantedComputes(
  parts: OperatorParts,
  { computes, baselines = [] }: RestoreRequest,
): Promise<OperatorResult<Wanted>> {
  if (computes === 'all') {
    const projectIds = await parts.store.projectIds();
    return { ok: true, value: new Map(projectIds.map((projectId) => [projectId, undefined])) };
  }
  const wanted = new Map<string, Set<string>>();
  for (const written of computes) {
    const found = await findCompute(parts, written);
    // A file may be older than the fleet: who brings it sees which computes are not in the answer.
    if (!found.ok && found.error.code === 'not_found' && baselines.some((one) => one.compute_id === written)) continue;
    if (!found.ok) return found;
    const place = found.value;
    wanted.set(place.projectId, (wanted.get(place.projectId) ?? new Set()).add(place.computeId));
  }
  return { ok: true, value: wanted };
}

interface ProjectRequest extends Omit<RestoreRequest, 'computes'> {
  projectId: string;
  computeIds: ReadonlySet<string> | undefined;
}

async function restoreProject(parts: OperatorParts, request: ProjectRequest): Promise<Restored[] | undefined> {
  const { projectId, computeIds, owner, now, baselines = [] } = request;
  const brought = new Map(baselines.map((one) => [one.compute_id, one]));
  const nowMs = await parts.now();
  const restored: Restored[] = [];
  const before = baselines.length > 0 ? 'at the values of a file' : 'as it was before ebb';
  const message = `wanted back ${before}${now ? ', without waiting for sleep' : ''}`;
  const command = { kind: 'restore', code: 'restore', message, owner, atMs: nowMs } as const;
  const changed = await changeRecords(parts, projectId, command, (computeId, stored) => {
    if (computeIds && !computeIds.has(computeId)) return stored;
    const record = withBaseline(stored, brought.get(computeId));
    const outcome = outcomeOf(parts, computeId, { stored, record });
    const names = { project_id: projectId, compute_id: computeId };
    const decided = outcome === 'requested' ? decidedByPolicies(parts, computeId) : [];
    const partly = decided.length > 0 ? { policies_decide: decided } : {};
    restored.push({ ...names, baseline: settingsDocument(record.baseline), outcome, ...partly });
    if (outcome !== 'requested') return record;
    return withRestore(record, { owner, nowMs, now, fields: FIELD_GROUPS.filter((group) => !decided.includes(group)) });
  });
  if (!changed.ok) return undefined;
  if (changed.changed.length > 0) await parts.requestReconciles([projectId]);
  return restored;
}

/** A baseline that a person brings counts from then on: what is stored was taken when ebb had changed the compute already. */
function withBaseline(record: ComputeRecord, brought: ComputeBaseline | undefined): ComputeRecord {
  if (!brought) return record;
  const { min_cu: minCu, max_cu: maxCu, suspend_timeout_seconds: suspendTimeoutSeconds } = brought;
  const baseline = { minCu, maxCu, suspendTimeoutSeconds };
  return hasSettings(record.baseline, baseline) ? record : { ...record, baseline };
}

/** Only a daemon knows what policies say. A store alone is asked without them: the next reconcile drops what they decide. */
function outcomeOf(
  parts: OperatorParts,
  computeId: string,
  { stored, record: { baseline } }: { stored: ComputeRecord; record: ComputeRecord },
): Restored['outcome'] {
  const seen = parts.daemon?.fleet.known(computeId)?.evaluatedCompute;
  const isUntouched = Object.keys(stored.lastApplied).length === 0 && baseline === stored.baseline;
  if (isUntouched || hasSettings(seen?.compute ?? { ...stored.baseline, ...stored.lastApplied }, baseline))
    return 'nothing_to_do';
  return decidedByPolicies(parts, computeId).length === FIELD_GROUPS.length ? 'policies_decide' : 'requested';
}

/** The groups of fields that policies set now: a request for them is not kept until they no longer do. */
function decidedByPolicies({ daemon }: OperatorParts, computeId: string): FieldGroup[] {
  const setBy = daemon?.fleet.known(computeId)?.evaluatedCompute.decision.setBy ?? {};
  return FIELD_GROUPS.filter((group) => setBy[group] !== undefined);
}
