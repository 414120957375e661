import type { PGlite } from '@electric-sql/pglite';
import type { PgPool } from 'bullmq';
import { MOST_AHEAD_MS } from '../../domain/overrides/instants-ahead.ts';
import type { Log } from '../../ports/telemetry.ts';
import { createGuard, createStateChanges } from './engine-state.ts';
import { lockFolder } from './folder-lock.ts';
import { type OpenedEngine, refused } from './opened-engine.ts';
import { closeToOthers, prepareFolder } from './prepare-folder.ts';

interface EmbeddedOptions {
  folder: string;
  schema: string;
  log: Log;
}

/**
 * Opens the Postgres that lives in `folder`, for this process alone; makes both if they are not there. The first start takes
 * seconds, later ones less than one. Survives kill -9; a loss of power may cost what was written last, since nothing is synced.
 */
export async function openEmbedded(options: EmbeddedOptions): Promise<OpenedEngine> {
  const { folder } = options;
  const prepared = prepareFolder(folder);
  if (!prepared.ok) return refused(prepared.message);
  try {
    return await openIn(prepared.realPath, options);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return refused(`cannot open the embedded queue in ${folder}: ${reason}`);
  }
}

async function openIn(realPath: string, { folder, schema, log }: EmbeddedOptions): Promise<OpenedEngine> {
  const changes = createStateChanges();
  let pool: PgPool | undefined;
  const lock = await lockFolder({
    realPath,
    onLost: () => {
      changes.report({
        up: false,
        message: `the folder ${folder} was removed or taken over by another ebb: stop this one`,
      });
      void pool?.end();
    },
  });
  if (!lock.ok) return refused(inUse(folder), 'in_use');
  let database: PGlite | undefined;
  try {
    closeToOthers(realPath);
    // Only now: a command that finds the folder in use asks the daemon, and need not wait for a database to be loaded.
    const [{ isFull, openDatabase, startMaintenance }, { createPglitePool }, watched] = await Promise.all([
      import('./database-folder.ts'),
      import('./pglite-pool.ts'),
      import('./watched-pool.ts'),
    ]);
    const { isServerAway, prepareSchema, watchPool } = watched;
    const opened = await openDatabase(realPath);
    database = opened;
    const made = createPglitePool({ database: opened });
    pool = made;
    await prepareSchema({ pool: made, schema });
    await made.query(`SET search_path TO "${schema}"`);
    await bringJobsNear(made);
    const stopWatching = watchPool({
      pool: made,
      onChange: (error) => changes.report(stateAfter(error, folder)),
      isSuspect: () => isFull(realPath),
    });
    const stopMaintenance = startMaintenance({ pool: made, log });
    const close = once(async () => {
      changes.end();
      stopWatching();
      stopMaintenance();
      await made.end();
      await opened.close();
      await lock.release();
    });
    const engine = { kind: 'postgres', name: 'embedded', schema, pool: made, close } as const;
    const guard = createGuard({ message: () => `the embedded queue in ${folder} does not work`, isAway: isServerAway });
    return { ok: true, engine: { ...engine, ...guard, onStateChange: changes.onStateChange } };
  } catch (error) {
    await database?.close().catch(() => {});
    await lock.release();
    throw error;
  }
}

function inUse(folder: string): string {
  return `the embedded queue in ${folder} is in use by another ebb: stop that one, or use redis:// for several daemons`;
}

function stateAfter(error: Error | undefined, folder: string) {
  if (error === undefined) return { up: true, message: `the embedded queue in ${folder} works again` };
  return { up: false, message: `the embedded queue in ${folder} fails: ${error.message}` };
}

function once(run: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined;
  return () => {
    running ??= run();
    return running;
  };
}

/**
 * What a clock that was ahead has left in the queue, on an engine that nobody else uses: locks of jobs that a killed daemon had, triggers
 * that come again by themselves, and schedules. They count from now on: else their jobs, and all that are deduplicated against
 * them, would wait for an instant that is years away. Boundaries are meant to lie ahead, and are found again.
 */
async function bringJobsNear(pool: PgPool, nowMs = Date.now()): Promise<void> {
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
  // Jobs of a killed daemon are looked for again so long after this instant.
  await pool.query(`DELETE FROM meta WHERE field = 'stalled-check'`);
}
