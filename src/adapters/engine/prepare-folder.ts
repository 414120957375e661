import { accessSync, chmodSync, constants, lstatSync, mkdirSync, readdirSync, realpathSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';

export type PreparedFolder = { ok: true; realPath: string } | { ok: false; message: string };

/** Nobody but the owner: PGlite asks for no modes, so whatever it makes later goes by the umask. */
const OWNER_ONLY = 0o077;

/**
 * Makes the folder if it is not there, and says what is wrong if it can't be written to. From then on it is its owner's alone (0700, and
 * what is made in it 0600), whatever the umask was and no matter who made it.
 */
export function prepareFolder(folder: string): PreparedFolder {
  if (folder === '') return { ok: false, message: 'embedded: needs a folder, e.g. EBB_QUEUE_URL=embedded:.ebb' };
  try {
    process.umask(OWNER_ONLY);
    makeWithParents(resolve(folder));
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK);
    closeOne(realpathSync(folder));
    return { ok: true, realPath: realpathSync(folder) };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const advice = 'make it writable, or name another one with EBB_QUEUE_URL=embedded:DIR';
    return { ok: false, message: `cannot write to the folder ${folder} (${code}): ${advice}` };
  }
}

/** Not mkdir's own `recursive`: where the system says ENOENT of a folder whose parent is there (/proc), Node tries for ever. */
function makeWithParents(folder: string): void {
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return;
  makeWithParents(dirname(folder));
  mkdirSync(folder, { mode: 0o700 });
}

/** Closes to others what an earlier version, or a copy, has left open. Only with the lock on the folder: what vanishes meanwhile is an error. */
export function closeToOthers(folder: string): void {
  const database = join(folder, 'db');
  for (const path of [database, join(folder, 'lock')]) closeOne(path);
  if (!statSync(database, { throwIfNoEntry: false })?.isDirectory()) return;
  for (const path of readdirSync(database, { recursive: true })) closeOne(join(database, String(path)));
}

/** A mounted folder may belong to somebody else, and stays as it is. */
function closeOne(path: string): void {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (!found || found.isSymbolicLink() || (found.mode & OWNER_ONLY) === 0) return;
  try {
    chmodSync(path, found.mode & 0o700);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') throw error;
  }
}
