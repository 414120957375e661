import type { PGlite } from '@electric-sql/pglite';
import type { PgPool } from 'bullmq';
import type { Log } from '../../ports/telemetry.ts';
import { createGuard, createStateChanges } from './engine-state.ts';
import { lockFolder } from './folder-lock.ts';
import { bringJobsNear, keepJobsNear, releaseLocksAhead } from './jobs-ahead.ts';
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
    await releaseLocksAhead(made);
    await bringJobsNear(made);
    const stopKeepingNear = keepJobsNear({ pool: made, log });
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
      stopKeepingNear();
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
