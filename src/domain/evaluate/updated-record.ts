import type { Compute } from '../compute/compute.ts';
import { forgetRestored } from '../overrides/restore.ts';
import { detectManualChanges } from '../plan/manual-changes.ts';
import type { ComputeRecord } from '../records/compute-record.ts';
import { forgetOvercome } from '../records/failures.ts';
import { withLag } from '../records/lag.ts';
import { isReverted, type Situation } from './evaluate.ts';
import { withProjectName } from './project-names.ts';
import { withTrials } from './trials.ts';

/** The facts that a record is compared with. */
export interface RecordSituation extends Pick<Situation, 'policies' | 'holds' | 'manualChanges'> {
  /** Milliseconds since the epoch. */
  nowMs: number;
  /** The start of the reading that shows the compute; now if absent. */
  readAtMs?: number;
  /** The start of enforcing, for a record that lacks it; absent where ebb only observes. Milliseconds since the epoch. */
  enforcedSinceMs?: number;
}

/**
 * A record with its pending write confirmed and updated by its compute and the policies: the basis of decisions, in a daemon and in a
 * plan. The same object if nothing has changed.
 */
export function updatedRecord(confirmed: ComputeRecord, compute: Compute, about: RecordSituation): ComputeRecord {
  const { enforcedSinceMs, ...given } = about;
  const { policies, nowMs, readAtMs = nowMs } = given;
  const seen = withLag(forgetOvercome(confirmed, compute), compute, readAtMs);
  const named = withProjectName(forgetRestored(seen, compute), compute, policies, nowMs);
  const record = enforcedSinceMs === undefined ? named : enforced(named, compute, { ...about, enforcedSinceMs });
  return detectManualChanges(record, compute, { nowMs, readAtMs }, (group) =>
    isReverted({ ...given, compute, record }, group),
  );
}

function enforced(
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
