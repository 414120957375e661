import type { ComputeRecord } from '../../domain/records/compute-record.ts';
import type { Clock } from '../../ports/clock.ts';
import type { LockedProject } from '../leases/locked-project.ts';
import type { CachedProject, Fleet } from './fleet.ts';

/** A locked project that the control API has confirmed. */
export interface LockedAndRead extends LockedProject {
  cachedProject: CachedProject;
}

/** The record of a compute: from the store, or from this daemon's memory where the store has lost it. */
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
 * Readings from before this instant are not used: they may lack a change that was sent. If another daemon sent the last change, whose
 * clock differs, or if the sender is unknown, no reading so far is used.
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
