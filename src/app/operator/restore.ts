import { FIELD_GROUPS, type FieldGroup, fieldsOf, hasSettings, NEVER_SUSPENDS } from '../../domain/compute/compute.ts';
import { MAX_AUTOSCALING_CU } from '../../domain/compute/compute-units.ts';
import { withoutRestore, withRestore } from '../../domain/overrides/restore.ts';
import type { ComputeRecord, SetBy } from '../../domain/records/compute-record.ts';
import type { RestoreDocument } from '../../ports/documents.ts';
import type { ComputeBaseline, OperatorResult, RestoreRequest } from '../../ports/operator.ts';
import { changeRecords, projectBusy } from './change-records.ts';
import { baselineProblem, ownerProblem, unconfirmed } from './check-request.ts';
import { settingsDocument } from './documents.ts';
import { type ComputePlace, computeFinder } from './find-compute.ts';
import { inFlight } from './in-flight.ts';
import { fail, type OperatorParts } from './parts.ts';

type Restored = RestoreDocument['computes'][number];

/**
 * Stores the request that computes go back to their baseline, or to the one that the request brings. It is applied like every other
 * change, by a daemon or by `ebb apply`, where no policy sets a value. More than one compute goes back only for those who know how many.
 */
export async function restore(parts: OperatorParts, request: RestoreRequest): Promise<OperatorResult<RestoreDocument>> {
  const { baselines = [], cancel, preview } = request;
  const problem = ownerProblem(request.owner) ?? baselineProblem(baselines);
  if (problem !== undefined) return fail('invalid', problem);
  const wanted = await wantedComputes(parts, request);
  if (!wanted.ok) return wanted;
  const changeOne = cancel ? withdraw : await restoring(parts, request);
  const foreseen: Restored[] = [];
  for (const [projectId, computeIds] of wanted.value) {
    for (const [computeId, stored] of await parts.store.records(projectId)) {
      if (!computeIds || computeIds.has(computeId)) foreseen.push(changeOne({ projectId, computeId }, stored).restored);
    }
  }
  const agreed = new Set(foreseen.filter(isChanged).map(({ compute_id }) => compute_id));
  const count = agreed.size;
  if (preview) return { ok: true, value: { computes: foreseen, count } };
  const refused = unconfirmed(request, count, !cancel);
  if (refused) return refused;
  return changeAll(parts, request, { wanted: wanted.value, agreed, changeOne });
}

function isChanged({ outcome }: Restored): boolean {
  return outcome === 'requested' || outcome === 'withdrawn';
}

/** Changes one compute and its record. */
type ChangeOne = (place: ComputePlace, stored: ComputeRecord) => { restored: Restored; record: ComputeRecord };

async function changeAll(
  parts: OperatorParts,
  request: RestoreRequest,
  { wanted, agreed, changeOne }: { wanted: Wanted; agreed: ReadonlySet<string>; changeOne: ChangeOne },
): Promise<OperatorResult<RestoreDocument>> {
  const { owner, cancel } = request;
  const command = { kind: 'restore', code: 'restore', message: messageOf(request), owner } as const;
  const computes: Restored[] = [];
  for (const [projectId, computeIds] of wanted) {
    const ofProject: Restored[] = [];
    const atMs = await parts.now();
    const outcome = await changeRecords(parts, projectId, { ...command, atMs }, (computeId, stored) => {
      if (computeIds && !computeIds.has(computeId)) return stored;
      const { restored, record } = changeOne({ projectId, computeId }, stored);
      // Computes that changed only after the confirmed count are left alone.
      if (isChanged(restored) && !agreed.has(computeId)) return stored;
      ofProject.push(restored);
      return record;
    });
    if (!outcome.ok) return fail('busy', projectBusy(projectId));
    computes.push(...ofProject);
    if (outcome.changed.length > 0) await parts.requestReconciles([projectId]);
  }
  const changed = new Set(computes.filter(isChanged).map(({ compute_id }) => compute_id));
  const in_flight = cancel ? await inFlight(parts, { concerns: (id) => changed.has(id) }) : undefined;
  return { ok: true, value: { computes, count: changed.size, ...(in_flight && { in_flight }) } };
}

function messageOf({ cancel, now, baselines = [] }: RestoreRequest): string {
  if (cancel) return 'the request to go back is withdrawn';
  const before = baselines.length > 0 ? 'at the values of a file' : 'as it was before ebb';
  return `wanted back ${before}${now ? ', without waiting for sleep' : ''}`;
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
  const find = computeFinder(parts);
  for (const written of computes) {
    const found = await find(written);
    // A file may be older than the fleet: who brings it sees which computes are not in the answer.
    if (!found.ok && found.error.code === 'not_found' && baselines.some((one) => one.compute_id === written)) continue;
    if (!found.ok) return found;
    const place = found.value;
    wanted.set(place.projectId, (wanted.get(place.projectId) ?? new Set()).add(place.computeId));
  }
  return { ok: true, value: wanted };
}

/** A change that has begun is not called back. */
const withdraw: ChangeOne = (place, stored) => {
  const outcome = stored.restore ? 'withdrawn' : 'nothing_to_do';
  return { restored: restoredDocument(place, stored, outcome), record: withoutRestore(stored) };
};

async function restoring(parts: OperatorParts, request: RestoreRequest): Promise<ChangeOne> {
  const { owner, now, baselines = [] } = request;
  const brought = new Map(baselines.map((one) => [one.compute_id, one]));
  const nowMs = await parts.now();
  return (place, stored) => {
    const record = withBaseline(stored, brought.get(place.computeId));
    const { away, setBy } = differenceOf(parts, place.computeId, { stored, record });
    const decided = away.filter((group) => setBy[group] !== undefined);
    const fields = away.filter((group) => setBy[group] === undefined);
    const unasked = away.length > 0 ? 'policies_decide' : 'nothing_to_do';
    const outcome = fields.length > 0 ? 'requested' : unasked;
    const restored = {
      ...restoredDocument(place, record, outcome),
      ...(fields.length > 0 && decided.length > 0 && { policies_decide: decided }),
      ...(decided.length > 0 && { set_by: Object.fromEntries(decided.map((group) => [group, setBy[group]])) }),
    };
    return { restored, record: fields.length > 0 ? withRestore(record, { owner, nowMs, now, fields }) : record };
  };
}

function restoredDocument(
  { projectId, computeId }: ComputePlace,
  { baseline }: ComputeRecord,
  outcome: Restored['outcome'],
): Restored {
  return { project_id: projectId, compute_id: computeId, baseline: settingsDocument(baseline), outcome };
}

/** A baseline that a person brings counts from then on: what is stored was taken when ebb had changed the compute already. */
function withBaseline(record: ComputeRecord, brought: ComputeBaseline | undefined): ComputeRecord {
  if (!brought) return record;
  const { min_cu: minCu, max_cu: maxCu, suspend_timeout_seconds: suspendTimeoutSeconds } = brought;
  const baseline = { minCu, maxCu, suspendTimeoutSeconds };
  return hasSettings(record.baseline, baseline) ? record : { ...record, baseline };
}

/**
 * Compares a compute with its baseline, and names the policies that set each field: as a daemon has seen it, else as stored by the last
 * reconcile. A timeout can't be restored while the compute stays too large to have one.
 */
function differenceOf(
  { daemon }: OperatorParts,
  computeId: string,
  { stored, record: { baseline } }: { stored: ComputeRecord; record: ComputeRecord },
): { away: FieldGroup[]; setBy: SetBy } {
  const seen = daemon?.fleet.known(computeId)?.evaluatedCompute;
  const setBy = seen?.decision.setBy ?? stored.setBy ?? {};
  const isUntouched = Object.keys(stored.lastApplied).length === 0 && baseline === stored.baseline;
  if (isUntouched) return { away: [], setBy };
  const settings = seen?.compute ?? { ...stored.baseline, ...stored.lastApplied };
  const away = FIELD_GROUPS.filter((group) => !hasSettings(settings, fieldsOf(group, baseline) ?? {}));
  const sizeGoesBack = away.includes('size') && setBy.size === undefined;
  const { maxCu } = sizeGoesBack ? baseline : settings;
  const staysAwake = maxCu > MAX_AUTOSCALING_CU && settings.suspendTimeoutSeconds === NEVER_SUSPENDS;
  return { away: away.filter((group) => group === 'size' || !staysAwake), setBy };
}
