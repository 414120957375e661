import type { PgPool } from 'bullmq';
import { MOST_AHEAD_MS } from '../../domain/overrides/instants-ahead.ts';

/**
 * What a clock that was ahead has left in the queue, on an engine that nobody else uses: locks of jobs that a killed daemon had, triggers
 * that come again by themselves, and schedules. They count from now on: else their jobs, and all that are deduplicated against
 * them, would wait for an instant that is years away. Boundaries are meant to lie ahead, and are found anew.
 */
export async function bringJobsNear(pool: PgPool, nowMs = Date.now()): Promise<void> {
  const latestMs = nowMs + MOST_AHEAD_MS;
  await pool.query(`UPDATE job SET locked_until_ms = $1 WHERE state = 'active' AND locked_until_ms > $2`, [
    nowMs,
    latestMs,
  ]);
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
}
