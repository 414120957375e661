import { type Compute, FIELD_GROUPS, fieldsOf } from '../../domain/compute/compute.ts';
import type { ComputeRecord } from '../../domain/records/compute-record.ts';
import type { Store } from '../../ports/store.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { type EvaluateDeps, evaluateQuietly } from './evaluate.ts';

export interface AdoptDeps extends EvaluateDeps {
  fleet: Fleet;
  store: Pick<Store, 'records'>;
}

/**
 * Evaluates a project from stored records, without a request, since another daemon may have reconciled it. Starts from the latest known
 * state of each compute, cached or after this daemon's own change, and adds the changes that any daemon has applied since.
 */
export async function adoptProject(deps: AdoptDeps, projectId: string): Promise<void> {
  const { fleet } = deps;
  const askedAtMonotonicMs = deps.clock.monotonicMs();
  const records = await deps.store.records(projectId);
  const cachedProject = fleet.cachedProject(projectId);
  if (!cachedProject) return;
  const computes = cachedProject.computes.map((compute) => {
    const known = fleet.known(compute.computeId);
    const isNewer = known && known.atMonotonicMs >= cachedProject.readAtMonotonicMs;
    const seen = isNewer ? known.evaluatedCompute.compute : compute;
    return withApplied(seen, records.get(compute.computeId), cachedProject.readAtMs);
  });
  for (const evaluatedCompute of evaluateQuietly(deps, computes, records)) {
    // An evaluation that this daemon has made meanwhile used a newer record.
    const knownAtMs = fleet.known(evaluatedCompute.compute.computeId)?.atMonotonicMs ?? Number.NEGATIVE_INFINITY;
    if (knownAtMs < askedAtMonotonicMs) fleet.adopt(evaluatedCompute);
  }
}

/** Returns the compute with the changes applied after it was read; a field that a person had changed stays as it was read. */
function withApplied(compute: Compute, record: ComputeRecord | undefined, readAtMs: number): Compute {
  if (!record || record.intent || (record.lastSentAtMs ?? 0) <= readAtMs) return compute;
  const applied = FIELD_GROUPS.filter((group) => record.manual?.[group] === undefined).map((group) =>
    fieldsOf(group, record.lastApplied),
  );
  return Object.assign({}, compute, ...applied);
}
