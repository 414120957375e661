import { existsSync, renameSync, rmSync, statfsSync } from 'node:fs';
import { join } from 'node:path';
import { PGlite } from '@electric-sql/pglite';
import { NodeFS } from '@electric-sql/pglite/nodefs';
import type { PgPool } from 'bullmq';
import type { Log } from '../../ports/telemetry.ts';

/** An empty database takes some 40 MB, and its log of changes grows from there. */
const FIRST_START_BYTES = 64 * 1024 * 1024;

/** With less a running database can't do anything. */
const LEAST_BYTES = 1024 * 1024;

/** ENOSPC in the C library that PGlite is compiled with. */
const ENOSPC_IN_PGLITE = 51;

/**
 * Opens the database of an embedded folder, which the caller has locked. Invariant: `db` is there as a whole or not at all. It is made
 * beside, and renamed when it is complete, so that a first start that is killed, or finds no room, leaves nothing that a later
 * one could not open. Throws an Error whose message says what is wrong.
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

/** Explains errors of PGlite: some are no Error, and those of a crashed WebAssembly don't name the cause. */
function explain(error: unknown, folder: string): string {
  const { errno, message } = error as { errno?: number; message?: string };
  if (errno === ENOSPC_IN_PGLITE || isFull(folder)) return noRoom(folder, 'make room on its disk');
  if (message?.startsWith('there is too little room')) return message;
  const reason = message?.split('\n')[0] ?? (errno === undefined ? String(error) : `error ${errno}`);
  const advice = `if it stays so, move ${join(folder, 'db')} away: ebb then starts on an empty store`;
  return `its database can not be started (${reason}); ${advice}`;
}

/** True if the folder's disk has too little room for a database. */
export function isFull(folder: string): boolean {
  return freeBytes(folder) < LEAST_BYTES;
}

function noRoom(folder: string, what: string): string {
  return `there is too little room (${Math.floor(freeBytes(folder) / 1024 / 1024)} MB are free): ${what}`;
}

/** None where that can't be told, as of a folder that was removed. */
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

/**
 * The folder of a PGlite whose files are its owner's alone. Emscripten gives some files the mode that C asks for after it has made
 * them, so that the umask of the process does not count.
 */
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

/** Settings of PGlite: a write-ahead log and a cache that fit a folder and a process of modest size. */
const START_SETTINGS = ['max_wal_size=64MB', 'min_wal_size=32MB', 'shared_buffers=32MB'].flatMap((setting) => [
  '-c',
  setting,
]);

/** At 20 jobs a second some 30 MB of changes, and a fraction of a second of work. */
const INTERVAL_MS = 5 * 60 * 1000;

/**
 * Does the work of a server's background processes, which PGlite lacks: without VACUUM the tables of a busy queue only grow, and without
 * CHECKPOINT so does the write-ahead log, whatever its configured size.
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
