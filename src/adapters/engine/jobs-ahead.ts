import type { PgPool } from 'bullmq';
import { MAX_AHEAD_MS } from '../../domain/overrides/instants-ahead.ts';
import type { Log } from '../../ports/telemetry.ts';

/** Interval between comparisons of the clock with monotonic time, milliseconds. */
const CHECK_EVERY_MS = 1_000;

/** Unlocks jobs of a killed daemon whose clock was ahead. Must be called before any worker runs. */
export async function releaseLocksAhead(pool: PgPool): Promise<void> {
  const nowMs = Date.now();
  await pool.query(`UPDATE job SET locked_until_ms = $1 WHERE state = 'active' AND locked_until_ms > $2`, [
    nowMs,
    nowMs + MAX_AHEAD_MS,
  ]);
}

/**
 * Makes schedules and repeated triggers due now if they were stored while the clock was ahead. Otherwise they could wait for years, and with
 * them all jobs that are deduplicated against them. Jobs of boundaries are left: they may lie ahead, and are scheduled again anyway. Only for
 * a queue that no other process uses.
 */
export async function correctJobsAhead(pool: PgPool): Promise<void> {
  const nowMs = Date.now();
  const latestMs = nowMs + MAX_AHEAD_MS;
  await pool.query(
    `UPDATE job SET process_at_ms = $1 FROM scheduler s
      WHERE job.state = 'delayed' AND job.queue = s.queue AND job.scheduler_id = s.scheduler_id
        AND job.process_at_ms > $2::bigint + coalesce(s.every_ms, 0)`,
    [nowMs, latestMs],
  );
  await pool.query('UPDATE scheduler SET next_run_ms = $1 WHERE next_run_ms > $2::bigint + coalesce(every_ms, 0)', [
    nowMs,
    latestMs,
  ]);
  await pool.query(
    `UPDATE job SET process_at_ms = $1 WHERE state = 'delayed' AND queue = 'operations' AND process_at_ms > $2`,
    [nowMs, latestMs],
  );
  // The instant of BullMQ's last search for stalled jobs, before which it would not search again.
  await pool.query(`DELETE FROM meta WHERE field = 'stalled-check'`);
}

/**
 * Corrects the jobs each time the clock is set back, until the returned function is called. The locks of running jobs need no correction:
 * their workers renew them.
 */
export function correctJobsWhenClockIsSet({ pool, log }: { pool: PgPool; log: Log }): () => void {
  // This changes much only when the clock is set.
  const leadMs = () => Date.now() - performance.now();
  let highestMs = leadMs();
  let isCorrecting = false;

  async function check(): Promise<void> {
    const currentMs = leadMs();
    highestMs = Math.max(highestMs, currentMs);
    if (isCorrecting || highestMs - currentMs <= MAX_AHEAD_MS) return;
    isCorrecting = true;
    try {
      await correctJobsAhead(pool);
      highestMs = currentMs;
    } catch (error) {
      log.warn({ err: error }, 'the jobs of the embedded queue could not be set to the new time: tried again');
    } finally {
      isCorrecting = false;
    }
  }

  const timer = setInterval(() => void check(), CHECK_EVERY_MS);
  timer.unref();
  return () => clearInterval(timer);
}
