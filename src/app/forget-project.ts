import { LEASE_MS } from './apply.ts';
import type { Context } from './context.ts';

/** Forgets a project of which the control API says that it does not exist: its picture, and its records. */
export async function forgetProject({ fleet, store, holder }: Context, projectId: string): Promise<void> {
  fleet.forget(projectId);
  const lease = await store.acquireLease(`project-${projectId}`, holder, LEASE_MS);
  if (!lease) return;
  try {
    const records = await store.records(projectId);
    for (const computeId of records.keys()) await store.deleteRecord(projectId, computeId, lease);
  } finally {
    await store.releaseLease(lease);
  }
}
