import type { PgPool } from 'bullmq';
import type { Log } from '../../ports/telemetry.ts';

/** What PGlite must be started with: a log of changes and a cache that fit a folder and a process of modest size. */
export const START_SETTINGS = ['max_wal_size=64MB', 'min_wal_size=32MB', 'shared_buffers=32MB'].flatMap((setting) => [
  '-c',
  setting,
]);

/** At 20 jobs a second some 30 MB of changes, and a fraction of a second of work. */
const INTERVAL_MS = 5 * 60 * 1000;

/**
 * Does what a server's background processes would do, and PGlite has none: without VACUUM the tables of a busy queue only grow,
 * and without CHECKPOINT so does the log of changes, whatever its size is set to.
 */
export async function maintain(pool: PgPool): Promise<void> {
  await pool.query('VACUUM');
  await pool.query('CHECKPOINT');
}

/** Maintains every 5 minutes until the returned function is called. */
export function startMaintenance({ pool, log }: { pool: PgPool; log: Log }): () => void {
  const timer = setInterval(() => {
    maintain(pool).catch((error: unknown) => log.warn({ err: error }, 'the embedded queue could not be tidied up'));
  }, INTERVAL_MS);
  timer.unref();
  return () => clearInterval(timer);
}
