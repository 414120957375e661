import type { ComputeRecord } from '../../domain/records/compute-record.ts';
import type { Lease } from '../../ports/store.ts';
import { withProjectLease } from '../leases/locked-project.ts';
import { auditOf, type Command, type OperatorParts } from './parts.ts';

/** The longest wait for a project's lease, and the interval of attempts, in real milliseconds. */
const LEASE_WAIT_MS = 10_000;
const RETRY_EVERY_MS = 100;

type ChangeRecord = (computeId: string, record: ComputeRecord) => ComputeRecord;
type ChangeOutcome = { ok: true; changed: string[] } | { ok: false };

/**
 * Changes records of a project under its lease, each with an audit entry. Returns the ids of the changed computes. The outcome is not ok if
 * another process kept the lease, or if the lease was lost before all records were changed.
 */
export async function changeRecords(
  parts: OperatorParts,
  projectId: string,
  command: Command,
  change: ChangeRecord,
): Promise<ChangeOutcome> {
  for (let waitedMs = 0; waitedMs < LEASE_WAIT_MS; waitedMs += RETRY_EVERY_MS) {
    const outcome = await withProjectLease(parts, projectId, (lease) =>
      changeUnder(lease, parts, { projectId, ...command }, change),
    );
    if (outcome) return outcome;
    await parts.clock.wait(RETRY_EVERY_MS);
  }
  return { ok: false };
}

async function changeUnder(
  lease: Lease,
  parts: OperatorParts,
  command: Command & { projectId: string },
  change: ChangeRecord,
): Promise<ChangeOutcome> {
  const { store } = parts;
  const { projectId } = command;
  const changed: string[] = [];
  for (const [computeId, record] of await store.records(projectId)) {
    const after = change(computeId, record);
    if (after === record) continue;
    const audit = await auditOf(parts, { ...command, computeId });
    if (!(await store.putRecord(projectId, computeId, after, lease, { audit }))) return { ok: false };
    changed.push(computeId);
  }
  return { ok: true, changed };
}

export function projectBusy(projectId: string): string {
  return `project ${projectId} is being written to: try again in a moment`;
}
