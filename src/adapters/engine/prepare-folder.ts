import { accessSync, constants, mkdirSync, realpathSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

export type PreparedFolder = { ok: true; realPath: string } | { ok: false; message: string };

/** Makes the folder if it is not there, readable for its owner alone, and says what is wrong if it can't be written to. */
export function prepareFolder(folder: string): PreparedFolder {
  if (folder === '') return { ok: false, message: 'embedded: needs a folder, e.g. EBB_QUEUE_URL=embedded:.ebb' };
  try {
    makeWithParents(resolve(folder));
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK);
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
