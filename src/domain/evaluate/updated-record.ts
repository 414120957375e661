import type { Compute } from '../compute/compute.ts';
import { withoutRestoredFields } from '../overrides/restore.ts';
import { detectManualChanges } from '../plan/manual-changes.ts';
import type { ComputeRecord } from '../records/compute-record.ts';
import { withLateEffects, withoutResolvedFailures } from '../records/failures.ts';
import { withLag } from '../records/lag.ts';
import { isReverted, type Situation } from './evaluate.ts';
import { withProjectName } from './project-names.ts';
import { withTrials } from './trials.ts';

/** The facts from which a record is updated. */
export interface RecordSituation extends Pick<Situation, 'policies' | 'holds' | 'manualChanges'> {
  /** Milliseconds since the epoch. */
  nowMs: number;
  /** The start of the reading that shows the compute; absent: now. */
  readAtMs?: number;
  /** The start of enforcement, for a record without it; absent where ebb only observes. Milliseconds since the epoch. */
  enforcedSinceMs?: number;
}

/**
 * Updates a record, whose pending write is already confirmed, from its compute and the policies. Daemons and plans decide by the
 * result. Returns the same object if nothing has changed.
 */
export function updatedRecord(confirmed: ComputeRecord, compute: Compute, situation: RecordSituation): ComputeRecord {
  const { enforcedSinceMs, ...facts } = situation;
  const { policies, nowMs, readAtMs = nowMs } = facts;
  const known = withoutResolvedFailures(withLateEffects(confirmed, compute, { nowMs, readAtMs }), compute);
  const seen = withLag(known, compute, readAtMs);
  const named = withProjectName(withoutRestoredFields(seen, compute), compute, policies, nowMs);
  const record =
    enforcedSinceMs === undefined ? named : withEnforcement(named, compute, { ...situation, enforcedSinceMs });
  return detectManualChanges(record, compute, { nowMs, readAtMs }, (group) =>
    isReverted({ ...facts, compute, record }, group),
  );
}

function withEnforcement(
  record: ComputeRecord,
  compute: Compute,
  { policies, nowMs, enforcedSinceMs }: RecordSituation & { enforcedSinceMs: number },
): ComputeRecord {
  return withTrials(
    policies,
    compute,
    record.enforcedSinceMs === undefined ? { ...record, enforcedSinceMs } : record,
    nowMs,
  );
}
