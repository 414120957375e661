import { isoInstant } from '../time/units.ts';

/** The times that bound the recovery of a group after a daemon has died, in milliseconds. A test checks how they depend on each other. */
export const RECOVERY = {
  /** The lease of a project; each pending write renews it. */
  leaseMs: 6_500,
  /** A call must end this long before the lease, so that the record can be stored before another process takes the lease. */
  leaseMarginMs: 1_500,
  /** A call only starts if the lease leaves it at least this time. */
  shortestCallMs: 2_000,
  /** The limit for a read, also under a lease. */
  readMs: 5_000,
  /** A request without an answer counts as failed after this time, unless a reading shows its effect. See also `LATE_EFFECT_MS`. */
  answerGraceMs: 20_000,
  /** A worker loses its job if it does not renew the lock for this time. */
  jobLockMs: 4_000,
  /** The interval of the search for stalled jobs; two of them pass before a job is taken over. */
  stalledJobsMs: 1_000,
  /** The lease of the leader, long enough for several failed renewals. */
  leaderLeaseMs: 15_000,
} as const;

interface Report {
  /** An ISO instant. */
  last_seen: string;
}

/** True if a report is so recent that its daemon may still hold the lease of the leader. */
export function isRecentReport({ last_seen: lastSeen }: Report, nowMs: number): boolean {
  return lastSeen >= isoInstant(nowMs - RECOVERY.leaderLeaseMs);
}

/** The recent reports, see {@link isRecentReport}; if there are none, the first report. */
export function recentReports<R extends Report>(reports: readonly R[], nowMs: number): readonly R[] {
  const recent = reports.filter((report) => isRecentReport(report, nowMs));
  return recent.length > 0 ? recent : reports.slice(0, 1);
}

/** The time limit of a write call after its lease was renewed, in milliseconds. */
export const CALL_MS = RECOVERY.leaseMs - RECOVERY.leaseMarginMs;
