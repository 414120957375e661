import type { ComputeRecord } from '../../domain/records/compute-record.ts';
import type { Clock } from '../../ports/clock.ts';
import type { LockedProject } from '../leases/locked-project.ts';
import type { CachedProject, Fleet } from './fleet.ts';

/** One of which the control API has told what is. */
export interface LockedAndRead extends LockedProject {
  cachedProject: CachedProject;
}

/** What is known of a compute: by the store, or by this daemon where the store has lost that, or what came after it. */
export function knownRecord(
  { fleet }: { fleet: Pick<Fleet, 'evaluatedCompute'> },
  stored: ReadonlyMap<string, ComputeRecord>,
  computeId: string,
): ComputeRecord | undefined {
  const there = stored.get(computeId);
  const own = fleet.evaluatedCompute(computeId)?.record;
  if (!there || !own) return there ?? own;
  return (own.lastSentAtMs ?? 0) > (there.lastSentAtMs ?? 0) ? own : there;
}

/**
 * What was read before a change was sent is not believed; nor is anything read so far if another daemon sent the last one,
 * since its clock is not ours, or if the store has lost who did.
 */
export function notBelievedBefore(
  { fleet, clock }: { fleet: Pick<Fleet, 'evaluatedOf'>; clock: Pick<Clock, 'now'> },
  { records }: Pick<LockedProject, 'records'>,
  projectId: string,
): number {
  const nowMs = clock.now();
  const own = new Map(fleet.evaluatedOf(projectId).map(({ compute, record }) => [compute.computeId, record]));
  const known = [...new Set([...records.keys(), ...own.keys()])];
  const listed = known.filter((computeId) => records.get(computeId)?.absentSinceMs === undefined);
  const instants = listed.map((computeId) => {
    const stored = records.get(computeId);
    const sentAtMs = stored?.lastSentAtMs ?? 0;
    const isOurs = stored !== undefined && sentAtMs === (own.get(computeId)?.lastSentAtMs ?? 0);
    // Nothing is read after an instant of a clock that was ahead: it counts as now.
    return isOurs ? Math.min(sentAtMs, nowMs) : nowMs;
  });
  return Math.max(0, ...instants);
}
