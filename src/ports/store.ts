import type { ComputeRecord } from '../domain/compute-record.ts';

/**
 * Leave to write to a project. It holds for a bounded real time; the fencing token grows with each holder, so that one who
 * slept past its end can be told from the one who came after.
 */
export interface Lease {
  name: string;
  holder: string;
  token: number;
}

/** What must outlive a daemon. Everything in it is bounded; no secret is ever stored. */
export interface Store {
  /** A random id made when the store was first used: another id means that the store came back empty. */
  storeId(): Promise<string>;
  /** The group's time, milliseconds since the epoch: Redis' own clock, so that several daemons agree. */
  timeMs(): Promise<number>;
  /**
   * The lease, or undefined while it is held, also by this holder: two jobs of one daemon keep each other out too. `ttlMs` is
   * real time.
   */
  acquireLease(name: string, holder: string, ttlMs: number): Promise<Lease | undefined>;
  /** Prolongs a lease to `ttlMs` from now; false if it is no longer held. */
  renewLease(lease: Lease, ttlMs: number): Promise<boolean>;
  /** Real milliseconds that the lease still holds, 0 if it is lost. */
  leaseRemainingMs(lease: Lease): Promise<number>;
  /** Gives the lease back; does nothing if it is no longer held. */
  releaseLease(lease: Lease): Promise<void>;
  /** The records of a project's computes by compute id. */
  records(projectId: string): Promise<Map<string, ComputeRecord>>;
  /** Stores one record if the lease is still held; false, and nothing written, if it is not. */
  putRecord(projectId: string, computeId: string, record: ComputeRecord, lease: Lease): Promise<boolean>;
  /** Forgets a compute that no longer exists, under the same condition. */
  deleteRecord(projectId: string, computeId: string, lease: Lease): Promise<boolean>;
  /** Ids of the projects that have records: what a restart must look at. */
  projectIds(): Promise<string[]>;
  close(): Promise<void>;
}
