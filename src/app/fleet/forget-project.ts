import type { Compute } from '../../domain/compute/compute.ts';
import type { ComputeRecord } from '../../domain/records/compute-record.ts';
import { DAY_MS } from '../../domain/time/units.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ControlApi } from '../../ports/control-api.ts';
import type { Lease, Store } from '../../ports/store.ts';
import type { Telemetry } from '../../ports/telemetry.ts';
import { type LeaseDeps, withProjectLease } from '../leases/locked-project.ts';
import { deleteReadings } from '../readings/read-readings.ts';
import type { CachedProject, Fleet } from './fleet.ts';

/** A compute that has been missing in lists for this long is forgotten, in milliseconds: a list may be wrong, and a baseline can't be recovered. */
const FORGET_ABSENT_AFTER_MS = DAY_MS;

/**
 * Asks the control API whether a project that is not listed exists, before it is forgotten. `refused`: the key may no longer read it.
 * `unknown`: there was no clear answer.
 */
export async function checkProjectExists(
  { api }: { api: ControlApi },
  projectId: string,
  signal?: AbortSignal,
): Promise<'exists' | 'gone' | 'refused' | 'unknown'> {
  for await (const page of api.listOperations(projectId, { ...(signal && { signal }) })) {
    if (page.ok) break;
    const { code, status } = page.error;
    // Without a status, the service was not reached.
    if (code === 'not_found' && status !== undefined) return 'gone';
    return code === 'forbidden' ? 'refused' : 'unknown';
  }
  return 'exists';
}

export interface ForgetProjectDeps extends LeaseDeps {
  fleet: Fleet;
  telemetry: Telemetry;
}

/** Forgets a project that the control API says does not exist: the cached project, its records and its shared reading. */
export async function forgetProject(deps: ForgetProjectDeps, projectId: string): Promise<void> {
  const { fleet, store, telemetry } = deps;
  const isForgotten = await withProjectLease(deps, projectId, async (lease) => {
    const readable = [...(await store.records(projectId)).keys()];
    const broken = [...(await store.brokenRecords())].filter(([, itsProject]) => itsProject === projectId);
    const computes = [...readable, ...broken.map(([computeId]) => computeId)];
    for (const computeId of computes) await store.deleteRecord(projectId, computeId, lease);
    await deleteReadings(store, [projectId]);
    const message = `${projectId} no longer exists: the records of its ${computes.length} computes are deleted`;
    const fields = { event: 'ebb.project_forgotten', project: projectId, computes };
    telemetry.log.info(fields, message);
    return true;
  });
  // If another process has the lease, the project is checked again with the next list.
  if (isForgotten) fleet.forget(projectId);
}

interface AbsentComputesDeps {
  fleet: Fleet;
  store: Store;
  clock: Clock;
  telemetry: Telemetry;
}

type Reading = Pick<CachedProject, 'project' | 'computes' | 'unreadable' | 'readAtMs'>;

/**
 * Records when computes were first missing in the list, and forgets those that have been missing for long. A listed compute that can't be
 * parsed is not missing, nor is one that another daemon has seen after this reading began.
 */
export async function recordAbsent(
  deps: AbsentComputesDeps,
  lease: Lease,
  { project: { projectId }, computes, unreadable, readAtMs }: Reading,
  stored: ReadonlyMap<string, ComputeRecord>,
): Promise<void> {
  const present = new Set([...computes, ...unreadable].map(({ computeId }) => computeId));
  // An unreadable entry without an id may be any compute.
  if (present.has(undefined)) return;
  const { fleet, store, clock } = deps;
  const isMissing = (id: string, record: ComputeRecord) =>
    !present.has(id) && !isSeenSince(record, readAtMs, clock.now());
  for (const [computeId, record] of stored) {
    if (!isMissing(computeId, record)) continue;
    if (record.absentSinceMs === undefined) {
      await store.putRecord(projectId, computeId, { ...record, absentSinceMs: clock.now() }, lease);
      logAbsent(deps, projectId, computeId);
    } else await forgetLongAbsent(deps, lease, { projectId, computeId }, record.absentSinceMs);
  }
  const broken = await store.brokenRecords();
  for (const [computeId, itsProject] of broken) {
    if (itsProject !== projectId) continue;
    const sinceMs = fleet.brokenAbsentSinceMs.get(computeId);
    if (present.has(computeId)) fleet.brokenAbsentSinceMs.delete(computeId);
    else if (sinceMs !== undefined) await forgetLongAbsent(deps, lease, { projectId, computeId }, sinceMs);
    else {
      fleet.brokenAbsentSinceMs.set(computeId, clock.now());
      logAbsent(deps, projectId, computeId);
    }
  }
}

/** Returns true if the compute was first seen after an instant. A first sight in the future is by a clock that was ahead, and proves nothing. */
function isSeenSince({ firstSeenAtMs }: ComputeRecord, instantMs: number, nowMs: number): boolean {
  return firstSeenAtMs > instantMs && firstSeenAtMs <= nowMs;
}

function logAbsent({ telemetry }: AbsentComputesDeps, project: string, compute: string): void {
  const message = `${compute} of ${project} is not listed any more; its record is kept for 24 hours`;
  telemetry.log.info({ event: 'ebb.compute_absent', project, compute }, message);
}

async function forgetLongAbsent(
  { fleet, store, clock, telemetry }: AbsentComputesDeps,
  lease: Lease,
  { projectId: project, computeId: compute }: Pick<Compute, 'projectId' | 'computeId'>,
  sinceMs: number,
): Promise<void> {
  if (clock.now() - sinceMs < FORGET_ABSENT_AFTER_MS) return;
  await store.deleteRecord(project, compute, lease);
  fleet.brokenAbsentSinceMs.delete(compute);
  const message = `${compute} of ${project} was not listed for 24 hours: its record is deleted`;
  telemetry.log.info({ event: 'ebb.compute_forgotten', project, compute }, message);
}

/** Returns the record without its mark of absence, for a compute that is listed again. */
export function withoutAbsence(record: ComputeRecord): ComputeRecord {
  if (record.absentSinceMs === undefined) return record;
  const { absentSinceMs: _, ...rest } = record;
  return rest;
}
