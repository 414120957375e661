import { accessSync, chmodSync, constants, lstatSync, mkdirSync, readdirSync, realpathSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import type { PGlite } from '@electric-sql/pglite';
import type { PgPool } from 'bullmq';
import { messageOf } from '../../common/errors.ts';
import type { Log } from '../../ports/telemetry.ts';
import { lockFolder } from './folder-lock.ts';
import { correctJobsAhead, correctJobsWhenClockIsSet, releaseLocksAhead } from './jobs-ahead.ts';
import { createOutageTranslation, createStateChanges, type OpenedEngine, refused } from './opened-engine.ts';

interface EmbeddedOptions {
  folder: string;
  schema: string;
  log: Log;
}

/**
 * Opens the Postgres in `folder`, for this process alone, and creates both if absent. The first start takes seconds, later ones less than
 * one. Survives kill -9; a loss of power may lose the last writes, since nothing is synced.
 */
export async function openEmbedded(options: EmbeddedOptions): Promise<OpenedEngine> {
  const { folder } = options;
  const prepared = prepareFolder(folder);
  if (!prepared.ok) return refused(prepared.message);
  try {
    return await openIn(prepared.realPath, options);
  } catch (error) {
    return refused(`cannot open the embedded queue in ${folder}: ${messageOf(error)}`);
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
    makeContentPrivate(realPath);
    // Loaded only now: a command that finds the folder in use asks the daemon, and needs no database.
    const [{ isFull, openDatabase, startMaintenance }, { createPglitePool }, watched] = await Promise.all([
      import('./database-folder.ts'),
      import('./pglite-pool.ts'),
      import('./watched-pool.ts'),
    ]);
    const { isServerUnavailable, prepareSchema, watchPool } = watched;
    const opened = await openDatabase(realPath);
    database = opened;
    const made = createPglitePool({ database: opened });
    pool = made;
    await prepareSchema({ pool: made, schema });
    await made.query(`SET search_path TO "${schema}"`);
    await releaseLocksAhead(made);
    await correctJobsAhead(made);
    const stopCorrecting = correctJobsWhenClockIsSet({ pool: made, log });
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
      stopCorrecting();
      await made.end();
      await opened.close();
      await lock.release();
    });
    const engine = { kind: 'postgres', name: 'embedded', schema, pool: made, close } as const;
    const translation = createOutageTranslation({
      message: () => `the embedded queue in ${folder} does not work`,
      isUnavailable: isServerUnavailable,
    });
    return { ok: true, engine: { ...engine, ...translation, onStateChange: changes.onStateChange } };
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

/** The permission bits of group and others, which is also the umask for files that PGlite creates. */
const OF_OTHERS = 0o077;

/** Creates the folder if it is missing, and makes it private (0700). Sets the process's umask, so that later files are private, too. */
function prepareFolder(folder: string): { ok: true; realPath: string } | { ok: false; message: string } {
  if (folder === '') return { ok: false, message: 'embedded: needs a folder, e.g. EBB_QUEUE_URL=embedded:.ebb' };
  try {
    process.umask(OF_OTHERS);
    makeWithParents(resolve(folder));
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK);
    makePrivate(realpathSync(folder));
    return { ok: true, realPath: realpathSync(folder) };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const advice = 'make it writable, or name another one with EBB_QUEUE_URL=embedded:DIR';
    return { ok: false, message: `cannot write to the folder ${folder} (${code}): ${advice}` };
  }
}

/** `recursive` of mkdir never ends where the system answers ENOENT for a folder whose parent exists (/proc). */
function makeWithParents(folder: string): void {
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return;
  makeWithParents(dirname(folder));
  mkdirSync(folder, { mode: 0o700 });
}

/**
 * Makes the files private: an earlier version or a copy may have left them accessible to others. Needs the lock on the folder, since it fails
 * if a file vanishes meanwhile.
 */
function makeContentPrivate(folder: string): void {
  const database = join(folder, 'db');
  for (const path of [database, join(folder, 'lock')]) makePrivate(path);
  if (!statSync(database, { throwIfNoEntry: false })?.isDirectory()) return;
  for (const path of readdirSync(database, { recursive: true })) makePrivate(join(database, String(path)));
}

/** A mounted folder that belongs to another user stays as it is. */
function makePrivate(path: string): void {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (!found || found.isSymbolicLink() || (found.mode & OF_OTHERS) === 0) return;
  try {
    chmodSync(path, found.mode & 0o700);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') throw error;
  }
}
