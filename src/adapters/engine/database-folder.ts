import { existsSync, renameSync, rmSync, statfsSync } from 'node:fs';
import { join } from 'node:path';
import { PGlite } from '@electric-sql/pglite';
import { NodeFS } from '@electric-sql/pglite/nodefs';
import type { PgPool } from 'bullmq';
import type { Log } from '../../ports/telemetry.ts';

/** An empty database takes some 40 MB, and its write-ahead log grows. */
const FIRST_START_BYTES = 64 * 1024 * 1024;

/** With less free space a running database fails. */
const LEAST_BYTES = 1024 * 1024;

/** ENOSPC in the C library that PGlite is compiled with. */
const ENOSPC_IN_PGLITE = 51;

/**
 * Opens the database of an embedded folder, which the caller has locked. Invariant: `db` is complete or absent, even if the first start is
 * interrupted: a database is created under another name, and renamed when complete. Throws an Error with a message for people.
 */
export async function openDatabase(folder: string): Promise<PGlite> {
  const path = join(folder, 'db');
  const unfinished = join(folder, 'db.new');
  rmSync(unfinished, { recursive: true, force: true });
  try {
    if (!existsSync(path)) {
      if (freeBytes(folder) < FIRST_START_BYTES) throw new Error(noRoom(folder, 'a first start needs 64 MB'));
      await (await open(unfinished)).close();
      renameSync(unfinished, path);
    }
    return await open(path);
  } catch (error) {
    const problem = new Error(explain(error, folder), { cause: error });
    rmSync(unfinished, { recursive: true, force: true });
    throw problem;
  }
}

function open(path: string): Promise<PGlite> {
  return PGlite.create({ fs: privateFiles(path), startParams: [...PGlite.defaultStartParams, ...START_SETTINGS] });
}

/** Some errors of PGlite are no instances of `Error`. Errors of crashed WebAssembly don't name their cause. */
function explain(error: unknown, folder: string): string {
  const { errno, message } = error as { errno?: number; message?: string };
  if (errno === ENOSPC_IN_PGLITE || isFull(folder)) return noRoom(folder, 'make room on its disk');
  if (message?.startsWith('there is too little room')) return message;
  const reason = message?.split('\n')[0] ?? (errno === undefined ? String(error) : `error ${errno}`);
  const advice = `if it stays so, move ${join(folder, 'db')} away: ebb then starts on an empty store`;
  return `its database cannot be started (${reason}); ${advice}`;
}

export function isFull(folder: string): boolean {
  return freeBytes(folder) < LEAST_BYTES;
}

function noRoom(folder: string, what: string): string {
  return `there is too little room (${Math.floor(freeBytes(folder) / 1024 / 1024)} MB are free): ${what}`;
}

/** 0 if the free space is unknown, for example because the folder was removed. */
function freeBytes(folder: string): number {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize;
  } catch {
    return 0;
  }
}

/** Permission bits of group and others. */
const OF_OTHERS = 0o077;

/** A PGlite folder whose files are private. The process's umask does not suffice: Emscripten sets the mode of some files after their creation. */
function privateFiles(path: string): NodeFS {
  const files = new NodeFS(path);
  const init = files.init.bind(files);
  files.init = async (...args) => {
    const made = await init(...args);
    made.emscriptenOpts.preRun?.push((module) => {
      const { node_ops: operations } = module.NODEFS as unknown as { node_ops: { setattr: SetAttributes } };
      const { setattr } = operations;
      operations.setattr = (node, { mode, ...others }) =>
        setattr(node, { ...others, ...(mode !== undefined && { mode: mode & ~OF_OTHERS }) });
    });
    return made;
  };
  return files;
}

type SetAttributes = (node: unknown, attributes: { mode?: number }) => unknown;

/** Keeps the write-ahead log and the cache small. */
const START_SETTINGS = ['max_wal_size=64MB', 'min_wal_size=32MB', 'shared_buffers=32MB'].flatMap((setting) => [
  '-c',
  setting,
]);

/** With 20 jobs a second, some 30 MB are changed in this time. The maintenance takes a fraction of a second. */
const MAINTENANCE_EVERY_MS = 5 * 60 * 1000;

/** PGlite has no background processes: without VACUUM the tables of a busy queue would grow for ever, without CHECKPOINT the write-ahead log. */
export async function maintain(pool: PgPool): Promise<void> {
  await pool.query('VACUUM');
  await pool.query('CHECKPOINT');
}

/** Maintains the database regularly until the returned function is called. */
export function startMaintenance({ pool, log }: { pool: PgPool; log: Log }): () => void {
  const timer = setInterval(() => {
    maintain(pool).catch((error: unknown) => log.warn({ err: error }, 'the embedded queue could not be tidied up'));
  }, MAINTENANCE_EVERY_MS);
  timer.unref();
  return () => clearInterval(timer);
}
