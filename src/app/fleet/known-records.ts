import type { ComputeRecord } from '../../domain/records/compute-record.ts';
import { RECOVERY } from '../../domain/records/recovery-times.ts';
import type { Clock } from '../../ports/clock.ts';
import type { LockedProject } from '../leases/locked-project.ts';
import type { CachedProject, Fleet } from './fleet.ts';

/** A locked project with a recent reading. */
export interface LockedReading extends LockedProject {
  cachedProject: CachedProject;
}

/** Returns the record of a compute from the store, or from this daemon's memory if the store has lost it. */
export function knownRecord(
  { fleet }: { fleet: Pick<Fleet, 'evaluatedCompute'> },
  stored: ReadonlyMap<string, ComputeRecord>,
  computeId: string,
): ComputeRecord | undefined {
  const storedRecord = stored.get(computeId);
  const own = fleet.evaluatedCompute(computeId)?.record;
  if (!storedRecord || !own) return storedRecord ?? own;
  return (own.lastSentAtMs ?? 0) > (storedRecord.lastSentAtMs ?? 0) ? own : storedRecord;
}

/**
 * Returns the instant from which readings are valid, milliseconds since the epoch: earlier ones may lack a change that was sent. If another
 * daemon, whose clock may differ, sent the last change, or the sender is unknown, that instant is now. Once a change without an answer can
 * count as lost, only readings from then on are valid.
 */
export function readingsValidFromMs(
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
    const concludedAtMs = stored?.intent ? stored.intent.atMs + RECOVERY.answerGraceMs : 0;
    const isOurs = stored !== undefined && sentAtMs === (own.get(computeId)?.lastSentAtMs ?? 0);
    // An instant in the future, by a clock that was ahead, counts as now.
    if (!isOurs) return nowMs;
    return concludedAtMs <= nowMs ? Math.max(concludedAtMs, Math.min(sentAtMs, nowMs)) : Math.min(sentAtMs, nowMs);
  });
  return Math.max(0, ...instants);
}
