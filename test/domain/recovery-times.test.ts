import { expect, it } from 'vitest';
import { CALL_MS, RECOVERY } from '../../src/domain/records/recovery-times.ts';

it('a lease outlasts the calls under it, and a change is sent again only when its call and lease are surely over', () => {
  const { leaseMs, shortestCallMs, readMs, answerGraceMs, jobLockMs, stalledJobsMs, leaderLeaseMs } = RECOVERY;
  expect(CALL_MS).toBe(5_000);
  expect(shortestCallMs).toBeLessThan(CALL_MS);
  expect(readMs).toBeLessThan(leaseMs);
  expect(answerGraceMs).toBeGreaterThan(2 * leaseMs);
  expect(leaderLeaseMs).toBeGreaterThan(leaseMs);
  // Who takes the job of a dead daemon up finds its lease about to end, not just begun.
  expect(jobLockMs + 2 * stalledJobsMs).toBeLessThanOrEqual(leaseMs);
});
