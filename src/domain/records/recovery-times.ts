/**
 * How soon a group goes on after a daemon has died, in real milliseconds. The times stand in one place because they depend on each other:
 * a test checks how, and the fault suite runs with them.
 */
export const RECOVERY = {
  /** A project's lease; it is prolonged with each pending write. */
  leaseMs: 8_000,
  /**
   * A call must end this long before the lease does, so that no other process holds it during the call. The record is stored in this time.
   */
  leaseMarginMs: 3_000,
  /** A lease that leaves a call less than this is not enough for it. */
  shortestCallMs: 2_000,
  /** Reading, also under a lease. */
  readMs: 5_000,
  /** A request without an answer may still take effect for this long. */
  answerGraceMs: 20_000,
  /** A worker that shows no sign of life loses its job after this time. */
  jobLockMs: 4_000,
  /** Interval of the search for stalled jobs; a job is taken after two of them. */
  stalledJobsMs: 1_000,
  /** The lease of the leader, which lives through several failures to renew it. */
  leaderLeaseMs: 15_000,
} as const;

/** A call that changes something ends within this time after its lease was prolonged, milliseconds. */
export const CALL_MS = RECOVERY.leaseMs - RECOVERY.leaseMarginMs;
