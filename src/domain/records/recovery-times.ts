/**
 * How soon a group goes on after a daemon has died, in real milliseconds. The times stand in one place because they depend on each other:
 * a test checks how, and the fault suite runs with them.
 */
export const RECOVERY = {
  /** A project's lease; it is prolonged with each pending write. */
  leaseMs: 8_000,
  /** A call must end so long before the lease does, so that nobody else holds it while the call is under way. The record follows in it. */
  leaseMarginMs: 3_000,
  /** A lease that leaves a call less than this is not enough for it. */
  shortestCallMs: 2_000,
  /** Reading, also under a lease. */
  readMs: 5_000,
  /** A request that got no answer may still take effect for so long. */
  answerGraceMs: 20_000,
  /** A job belongs for so long to a worker that shows no sign of life. */
  jobLockMs: 4_000,
  /** Interval of the search for stalled jobs; a job is taken after two of them. */
  stalledJobsMs: 1_000,
  /** The lease of the leader, which lives through several failures to renew it. */
  leaderLeaseMs: 15_000,
} as const;

/** A call that changes something ends within so many milliseconds after its lease was prolonged. */
export const CALL_MS = RECOVERY.leaseMs - RECOVERY.leaseMarginMs;
