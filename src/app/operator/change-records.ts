import { setTimeout as wait } from 'node:timers/promises';
import type { ComputeRecord } from '../../domain/records/compute-record.ts';
import { LEASE_MS } from '../leases/locked-project.ts';
import type { OperatorParts } from './parts.ts';

/** How long a project's lease is waited for, and how often it is asked for, in real milliseconds. */
const PATIENCE_MS = 10_000;
const ASK_EVERY_MS = 100;

/**
 * Changes records of a project under its lease, as every writer does; gives the ids of the computes whose record is another now.
 * `busy`: somebody else kept the lease for as long as a person would wait.
 */
export async function changeRecords(
  { store, holder }: OperatorParts,
  projectId: string,
  change: (computeId: string, record: ComputeRecord) => ComputeRecord,
): Promise<{ ok: true; changed: string[] } | { ok: false }> {
  for (let waitedMs = 0; waitedMs < PATIENCE_MS; waitedMs += ASK_EVERY_MS) {
    const lease = await store.acquireLease(`project-${projectId}`, holder, LEASE_MS);
    if (lease) {
      try {
        const changed: string[] = [];
        for (const [computeId, record] of await store.records(projectId)) {
          const after = change(computeId, record);
          if (after === record) continue;
          if (!(await store.putRecord(projectId, computeId, after, lease))) return { ok: false };
          changed.push(computeId);
        }
        return { ok: true, changed };
      } finally {
        await store.releaseLease(lease);
      }
    }
    await wait(ASK_EVERY_MS);
  }
  return { ok: false };
}

/** What to say when a project can't be had. */
export function projectBusy(projectId: string): string {
  return `project ${projectId} is being written to: try again in a moment`;
}
