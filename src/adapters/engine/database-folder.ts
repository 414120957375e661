import { existsSync, renameSync, rmSync, statfsSync } from 'node:fs';
import { join } from 'node:path';
import { PGlite } from '@electric-sql/pglite';
import { START_SETTINGS } from './maintenance.ts';
import { privateFiles } from './private-files.ts';

/** An empty database takes some 40 MB, and its log of changes grows from there. */
const FIRST_START_BYTES = 64 * 1024 * 1024;

/** With less a running database can't do anything. */
const LEAST_BYTES = 1024 * 1024;

/** What a full disk is called by the C library that PGlite is compiled with. */
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

/** PGlite throws what is no Error, and errors of a crashed WebAssembly that say nothing of the cause. */
function explain(error: unknown, folder: string): string {
  const { errno, message } = error as { errno?: number; message?: string };
  if (errno === ENOSPC_IN_PGLITE || isFull(folder)) return noRoom(folder, 'make room on its disk');
  if (message?.startsWith('there is too little room')) return message;
  const said = message?.split('\n')[0] ?? (errno === undefined ? String(error) : `error ${errno}`);
  const advice = `if it stays so, move ${join(folder, 'db')} away: ebb then starts on an empty store`;
  return `its database can not be started (${said}); ${advice}`;
}

/** True where the disk of a folder has no room for what a database does all the time. */
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
