import { thenCleanUp } from '../../common/errors.ts';
import type { ComputeRecord } from '../../domain/records/compute-record.ts';
import { RECOVERY } from '../../domain/records/recovery-times.ts';
import type { Lease, Store } from '../../ports/store.ts';

/** Delay before another attempt to read a project, in milliseconds. */
export const READ_RETRY_MS = 5_000;

/** A locked project and its stored records, which no other process can change while the lease is held. */
export interface LockedProject {
  lease: Lease;
  records: ReadonlyMap<string, ComputeRecord>;
}

export interface LeaseDeps {
  store: Store;
  /** Names this process as the holder of a lease; random. */
  holder: string;
}

/** Runs the work with the project's lease. If the lease is held, also by this process, returns undefined without running it. */
export async function withProjectLease<T>(
  deps: LeaseDeps,
  projectId: string,
  work: (lease: Lease) => Promise<T>,
): Promise<T | undefined> {
  const lease = await acquireProjectLease(deps, projectId);
  if (!lease) return undefined;
  return thenCleanUp(
    () => work(lease),
    () => deps.store.releaseLease(lease),
  );
}

function acquireProjectLease({ store, holder }: LeaseDeps, projectId: string): Promise<Lease | undefined> {
  return store.acquireLease(`project-${projectId}`, holder, RECOVERY.leaseMs);
}

/** Locks a project and reads its records; returns undefined while the lease is held, also by this process. The caller releases the lease. */
export async function lockProject(deps: LeaseDeps, projectId: string): Promise<LockedProject | undefined> {
  const { store } = deps;
  const lease = await acquireProjectLease(deps, projectId);
  if (!lease) return undefined;
  try {
    return { lease, records: await store.records(projectId) };
  } catch (error) {
    // If the lease can't be released, it expires.
    await store.releaseLease(lease).catch(() => undefined);
    throw error;
  }
}
