import { mapInTurns } from '../../common/in-turns.ts';
import { FIELD_GROUPS, type FieldGroup, fieldsOf, hasSettings, NEVER_SUSPENDS } from '../../domain/compute/compute.ts';
import { MAX_AUTOSCALING_CU } from '../../domain/compute/compute-units.ts';
import { withoutRestore, withRestore } from '../../domain/overrides/restore.ts';
import { compilePolicies } from '../../domain/policy/compiled-policies.ts';
import { ownersOf } from '../../domain/policy/owners.ts';
import type { ComputeRecord, SetBy } from '../../domain/records/compute-record.ts';
import type { RestoreDocument } from '../../ports/documents.ts';
import type { ComputeBaseline, OperatorResult, RestoreRequest } from '../../ports/operator.ts';
import { readReadings } from '../readings/read-readings.ts';
import { changeRecords, projectBusy } from './change-records.ts';
import { baselineProblem, ownerProblem, unconfirmed } from './check-request.ts';
import { settingsDocument } from './documents.ts';
import { type ComputePlace, computeFinder } from './find-compute.ts';
import { inFlight } from './in-flight.ts';
import { fail, type OperatorParts } from './parts.ts';

type Restored = RestoreDocument['computes'][number];

/**
 * Stores a request to restore computes to their baselines, or to given ones, or withdraws such requests. A daemon or `ebb apply` applies the
 * request like any other change, to fields that no policy sets. To restore several computes, their number must be confirmed.
 */
export async function restore(parts: OperatorParts, request: RestoreRequest): Promise<OperatorResult<RestoreDocument>> {
  const { baselines = [], cancel, preview } = request;
  const problem = ownerProblem(request.owner) ?? baselineProblem(baselines);
  if (problem !== undefined) return fail('invalid', problem);
  const wanted = await wantedComputes(parts, request);
  if (!wanted.ok) return wanted;
  const changeOne = cancel ? withdraw : await requestRestore(parts, request);
  const foreseen: Restored[] = [];
  for (const [projectId, computeIds] of wanted.value) {
    for (const [computeId, stored] of await parts.store.records(projectId)) {
      if (!computeIds || computeIds.has(computeId)) foreseen.push(changeOne({ projectId, computeId }, stored).restored);
    }
  }
  const confirmed = new Set(foreseen.filter(isChanged).map(({ compute_id }) => compute_id));
  const count = confirmed.size;
  if (preview) {
    const computes = request.computes === 'all' ? await withOwners(parts, foreseen) : foreseen;
    return { ok: true, value: { computes, count } };
  }
  const refused = unconfirmed(request, count, !cancel);
  if (refused) return refused;
  return changeAll(parts, request, { wanted: wanted.value, confirmed, changeOne });
}

/** Adds the owners of the computes that the daemon knows or, without a daemon, that are in the stored readings. */
async function withOwners(parts: OperatorParts, restored: readonly Restored[]): Promise<Restored[]> {
  const facts = parts.daemon ? knownToDaemon(parts.daemon) : await knownToStore(parts);
  const ownerOf = ownersOf(facts);
  const computeById = new Map(facts.computes.map((compute) => [compute.computeId, compute]));
  const withOwner = (one: Restored) => {
    const compute = computeById.get(one.compute_id);
    return compute ? { ...one, owner: ownerOf(compute) } : one;
  };
  return mapInTurns(restored, withOwner, parts.clock);
}

function knownToDaemon(daemon: NonNullable<OperatorParts['daemon']>) {
  const computes = [...daemon.fleet.evaluatedComputes()].map(({ compute }) => compute);
  return { rules: daemon.owners(), policies: daemon.policies(), computes };
}

/** The policies and owner rules are those of this machine. */
async function knownToStore({ store, policies, owners = [] }: OperatorParts) {
  const [{ readings }, loaded] = await Promise.all([readReadings(store), policies?.()]);
  return {
    rules: owners,
    policies: loaded && compilePolicies(loaded.set),
    computes: [...readings.values()].flatMap(({ computes }) => computes),
  };
}

function isChanged({ outcome }: Restored): boolean {
  return outcome === 'requested' || outcome === 'withdrawn';
}

/** Returns the changed record of a compute, and the outcome to report. */
type ChangeOne = (place: ComputePlace, stored: ComputeRecord) => { restored: Restored; record: ComputeRecord };

async function changeAll(
  parts: OperatorParts,
  request: RestoreRequest,
  { wanted, confirmed, changeOne }: { wanted: Wanted; confirmed: ReadonlySet<string>; changeOne: ChangeOne },
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
      // Computes that the confirmed number did not include are left alone.
      if (isChanged(restored) && !confirmed.has(computeId)) return stored;
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
  if (cancel) return 'the restore request is withdrawn';
  const target = baselines.length > 0 ? 'the values of a file' : 'the baseline';
  return `restore to ${target} requested${now ? ', without waiting for sleep' : ''}`;
}

/** Compute ids by project id; undefined for all computes of the project. */
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
  for (const target of computes) {
    const found = await find(target);
    // A file of baselines may name computes that are gone: they are left out.
    if (!found.ok && found.error.code === 'not_found' && baselines.some((one) => one.compute_id === target)) continue;
    if (!found.ok) return found;
    const place = found.value;
    wanted.set(place.projectId, (wanted.get(place.projectId) ?? new Set()).add(place.computeId));
  }
  return { ok: true, value: wanted };
}

/** Withdraws a request. A change that has begun continues. */
const withdraw: ChangeOne = (place, stored) => {
  const outcome = stored.restore ? 'withdrawn' : 'nothing_to_do';
  return { restored: restoredDocument(place, stored, outcome), record: withoutRestore(stored) };
};

async function requestRestore(parts: OperatorParts, request: RestoreRequest): Promise<ChangeOne> {
  const { owner, now, baselines = [] } = request;
  const givenBaselines = new Map(baselines.map((one) => [one.compute_id, one]));
  const nowMs = await parts.now();
  return (place, stored) => {
    const record = withBaseline(stored, givenBaselines.get(place.computeId));
    const { different, setBy } = differenceOf(parts, place.computeId, { stored, record });
    const decided = different.filter((group) => setBy[group] !== undefined);
    const fields = different.filter((group) => setBy[group] === undefined);
    const outcomeWithoutFields = decided.length > 0 ? 'policies_decide' : 'nothing_to_do';
    const outcome = fields.length > 0 ? 'requested' : outcomeWithoutFields;
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

/** Replaces the baseline in the record by a given one. ebb may have changed the compute before it stored its own. */
function withBaseline(record: ComputeRecord, given: ComputeBaseline | undefined): ComputeRecord {
  if (!given) return record;
  const { min_cu: minCu, max_cu: maxCu, suspend_timeout_seconds: suspendTimeoutSeconds } = given;
  const baseline = { minCu, maxCu, suspendTimeoutSeconds };
  if (hasSettings(record.baseline, baseline)) return record;
  const { baselineChanges: _before, ...rest } = record;
  return { ...rest, baseline };
}

/**
 * Returns the groups of fields that differ from the baseline, and the policies that set fields, by the daemon's last evaluation or else by the
 * stored record. Leaves out a timeout that can't be restored, since the compute stays too large to have a timeout.
 */
function differenceOf(
  { daemon }: OperatorParts,
  computeId: string,
  { stored, record: { baseline } }: { stored: ComputeRecord; record: ComputeRecord },
): { different: FieldGroup[]; setBy: SetBy } {
  const evaluated = daemon?.fleet.latestEvaluation(computeId);
  const setBy = evaluated?.decision.setBy ?? stored.setBy ?? {};
  const isUntouched = Object.keys(stored.lastApplied).length === 0 && baseline === stored.baseline;
  if (isUntouched) return { different: [], setBy };
  const settings = evaluated?.compute ?? { ...stored.baseline, ...stored.lastApplied };
  const different = FIELD_GROUPS.filter((group) => !hasSettings(settings, fieldsOf(group, baseline) ?? {}));
  const sizeGoesBack = different.includes('size') && setBy.size === undefined;
  const { maxCu } = sizeGoesBack ? baseline : settings;
  const staysAwake = maxCu > MAX_AUTOSCALING_CU && settings.suspendTimeoutSeconds === NEVER_SUSPENDS;
  return { different: different.filter((group) => group === 'size' || !staysAwake), setBy };
}
