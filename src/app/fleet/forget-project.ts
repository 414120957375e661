import type { ComputeRecord } from '../../domain/records/compute-record.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ControlApi } from '../../ports/control-api.ts';
import type { Lease, Store } from '../../ports/store.ts';
import type { Telemetry } from '../../ports/telemetry.ts';
import { type LeaseDeps, withProjectLease } from '../leases/locked-project.ts';
import type { CachedProject, Fleet } from './fleet.ts';

/**
 * A compute that is not listed any more is forgotten after 24 hours of absence, in milliseconds: a list may be wrong for a while, and a
 * baseline can't be got back.
 */
const FORGET_ABSENT_AFTER_MS = 24 * 3_600_000;

/**
 * Asks the control API about a project that is not listed, before it is forgotten. `refused`: the key may no longer read it; `unknown`:
 * there was no answer.
 */
export async function askForProject(
  { api }: { api: ControlApi },
  projectId: string,
  signal?: AbortSignal,
): Promise<'exists' | 'gone' | 'refused' | 'unknown'> {
  for await (const page of api.listOperations(projectId, { ...(signal && { signal }) })) {
    if (page.ok) break;
    const { code, status } = page.error;
    // Without a status the service was not reached.
    if (code === 'not_found' && status !== undefined) return 'gone';
    return code === 'forbidden' ? 'refused' : 'unknown';
  }
  return 'exists';
}

export interface ForgetProjectDeps extends LeaseDeps {
  fleet: Fleet;
  telemetry: Telemetry;
}

/** Forgets a project that the control API says does not exist: the cached project and its records. */
export async function forgetProject(deps: ForgetProjectDeps, projectId: string): Promise<void> {
  const { fleet, store, telemetry } = deps;
  const isForgotten = await withProjectLease(deps, projectId, async (lease) => {
    const readable = [...(await store.records(projectId)).keys()];
    const broken = [...(await store.brokenRecords())].filter(([, ofProject]) => ofProject === projectId);
    const computes = [...readable, ...broken.map(([computeId]) => computeId)];
    for (const computeId of computes) await store.deleteRecord(projectId, computeId, lease);
    const message = `${projectId} no longer exists: what was stored of its ${computes.length} computes is forgotten`;
    const fields = { event: 'ebb.project_forgotten', project: projectId, computes };
    telemetry.log.info(fields, message);
    return true;
  });
  // Otherwise another process is about to use the project: it is checked again with the next list.
  if (isForgotten) fleet.forget(projectId);
}

export interface AbsentComputesDeps {
  fleet: Fleet;
  store: Store;
  clock: Clock;
  telemetry: Telemetry;
}

/**
 * Notes since when computes of which there are records have not been listed, and forgets those of which that is long ago. One that
 * is listed and not understood is not absent.
 */
export async function recordAbsent(
  deps: AbsentComputesDeps,
  lease: Lease,
  { project: { projectId }, computes, unreadable }: Pick<CachedProject, 'project' | 'computes' | 'unreadable'>,
  stored: ReadonlyMap<string, ComputeRecord>,
): Promise<void> {
  const present = new Set([...computes, ...unreadable].map(({ computeId }) => computeId));
  // An entry without an id may be any of them.
  if (present.has(undefined)) return;
  const { fleet, store, clock } = deps;
  const place = (computeId: string) => ({ project: projectId, compute: computeId });
  for (const [computeId, record] of stored) {
    if (present.has(computeId)) continue;
    if (record.absentSinceMs === undefined) {
      await store.putRecord(projectId, computeId, { ...record, absentSinceMs: clock.now() }, lease);
      logAbsent(deps, place(computeId));
    } else await forgetLongAbsent(deps, lease, place(computeId), record.absentSinceMs);
  }
  const broken = await store.brokenRecords();
  for (const [computeId, ofProject] of broken) {
    if (ofProject !== projectId) continue;
    const sinceMs = fleet.brokenAbsentSinceMs.get(computeId);
    if (present.has(computeId)) fleet.brokenAbsentSinceMs.delete(computeId);
    else if (sinceMs !== undefined) await forgetLongAbsent(deps, lease, place(computeId), sinceMs);
    else {
      fleet.brokenAbsentSinceMs.set(computeId, clock.now());
      logAbsent(deps, place(computeId));
    }
  }
}

interface Place {
  project: string;
  compute: string;
}

function logAbsent({ telemetry }: AbsentComputesDeps, place: Place): void {
  const message = `${place.compute} of ${place.project} is not listed any more; what is stored of it is kept for 24 hours`;
  telemetry.log.info({ event: 'ebb.compute_absent', ...place }, message);
}

async function forgetLongAbsent(
  { fleet, store, clock, telemetry }: AbsentComputesDeps,
  lease: Lease,
  place: Place,
  sinceMs: number,
): Promise<void> {
  if (clock.now() - sinceMs < FORGET_ABSENT_AFTER_MS) return;
  await store.deleteRecord(place.project, place.compute, lease);
  fleet.brokenAbsentSinceMs.delete(place.compute);
  const message = `${place.compute} of ${place.project} was not listed for 24 hours: what was stored of it is forgotten`;
  telemetry.log.info({ event: 'ebb.compute_forgotten', ...place }, message);
}

/** The record of a compute that is listed. */
export function withoutAbsence(record: ComputeRecord): ComputeRecord {
  if (record.absentSinceMs === undefined) return record;
  const { absentSinceMs: _over, ...rest } = record;
  return rest;
}
