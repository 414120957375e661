import { readdir, readFile, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { errorCode } from '../../common/errors.ts';
import type { ApiAccount, KeySource } from './accounts.ts';
import { isSafeId } from './wire.ts';

// Messages are shown to teams, too, so they name files without the folder on this machine.

/** A key file that holds nothing else; read again when the file changes or the key was refused. */
export function keyFromFile(path: string): KeySource {
  const read = createKeyReader();
  return ({ refusedKey }) => read(path, refusedKey);
}

/**
 * Project-scoped keys from a folder: each file is named after its project and holds its key. Files whose name is no project id
 * (`.gitignore`, the `..data` of a mounted secret) are ignored; added and removed files take effect at once.
 */
export function keysFromFolder(folder: string): Required<Pick<ApiAccount, 'key' | 'projectIds'>> {
  const read = createKeyReader();
  return {
    key: ({ projectId, refusedKey }) => {
      if (projectId === undefined || !isSafeId(projectId)) throw new Error('there is a key for single projects only');
      return read(join(folder, projectId), refusedKey);
    },
    projectIds: async () => {
      const names = await readdir(folder).catch((error: unknown) => {
        throw new Error(`the folder of keys ${basename(folder)} cannot be read (${errorCode(error)})`);
      });
      return names.filter(isSafeId).sort();
    },
  };
}

function createKeyReader(): (path: string, refusedKey: string | undefined) => Promise<string> {
  const lastReads = new Map<string, { key: string; version: string }>();
  return async (path, refusedKey) => {
    try {
      const { mtimeMs, ctimeMs, ino, size } = await stat(path);
      // Inode and ctime show that another file was moved into its place.
      const version = `${mtimeMs} ${ctimeMs} ${ino} ${size}`;
      const before = lastReads.get(path);
      if (before?.version === version && before.key !== refusedKey) return before.key;
      const key = (await readFile(path, 'utf8')).trim();
      lastReads.set(path, { key, version });
      return key;
    } catch (error) {
      lastReads.delete(path);
      throw new Error(`the key file ${basename(path)} cannot be read (${errorCode(error)})`);
    }
  };
}
