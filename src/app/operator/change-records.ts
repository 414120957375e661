import type { ComputeRecord } from '../../domain/records/compute-record.ts';
import type { Lease } from '../../ports/store.ts';
import { withProjectLease } from '../leases/locked-project.ts';
import { auditOf, type Command, type OperatorParts } from './parts.ts';

/** Longest wait for a project's lease, and the interval of the tries, in real milliseconds. */
const PATIENCE_MS = 10_000;
const ASK_EVERY_MS = 100;

type ChangeRecord = (computeId: string, record: ComputeRecord) => ComputeRecord;
type ChangeOutcome = { ok: true; changed: string[] } | { ok: false };

/**
 * Changes records of a project under its lease, as every writer does, each with its line of the audit; gives the ids of the computes whose
 * record is another now. `busy`: somebody else kept the lease for as long as a person would wait.
 */
export async function changeRecords(
  parts: OperatorParts,
  projectId: string,
  command: Command,
  change: ChangeRecord,
): Promise<ChangeOutcome> {
  for (let waitedMs = 0; waitedMs < PATIENCE_MS; waitedMs += ASK_EVERY_MS) {
    const outcome = await withProjectLease(parts, projectId, (lease) =>
      changeUnder(lease, parts, { projectId, ...command }, change),
    );
    if (outcome) return outcome;
    await parts.clock.wait(ASK_EVERY_MS);
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
