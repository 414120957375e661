import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { chown, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { PostgresBinaries } from './binaries.ts';

const run = promisify(execFile);

export const POSTGRES_USER = 'ebb';

export interface ServerFolders {
  data: string;
  /** For the server's socket; its path must stay short. */
  socket: string;
}

interface DataFolders {
  /** The folders of a compute, made at first use; its data outlive its restarts. */
  of(computeId: string): Promise<ServerFolders>;
  remove(computeId: string): Promise<void>;
  removeAll(): Promise<void>;
}

/** One cluster is initialised and copied for each compute: initdb takes a second, a copy a tenth. */
export async function createDataFolders(binaries: PostgresBinaries, owner: Owner | undefined): Promise<DataFolders> {
  const root = await mkdtemp(join(tmpdir(), 'ebb-pg-'));
  if (owner !== undefined) await chown(root, owner.uid, owner.gid);
  const as = { ...owner, cwd: root };
  const template = join(root, 'template');
  const initdb = ['-D', template, '-U', POSTGRES_USER, '-A', 'trust', '-E', 'UTF8', '--locale=C', '-N'];
  await run(binaries.initdb, initdb, as).catch(async (error: Error) => {
    await rm(root, { recursive: true, force: true });
    throw error;
  });
  const known = new Map<string, Promise<ServerFolders>>();

  const create = async (): Promise<ServerFolders> => {
    const folder = join(root, String(known.size));
    const folders = { data: join(folder, 'data'), socket: folder };
    await mkdir(folder, { mode: 0o700 });
    if (owner !== undefined) await chown(folder, owner.uid, owner.gid);
    await run('cp', ['-R', template, folders.data], as);
    return folders;
  };

  return {
    of(computeId) {
      const folders = known.get(computeId) ?? create();
      known.set(computeId, folders);
      return folders;
    },
    async remove(computeId) {
      const folders = await known.get(computeId);
      if (folders !== undefined) await rm(folders.socket, { recursive: true, force: true });
    },
    removeAll: () => rm(root, { recursive: true, force: true }),
  };
}

/** The user that the servers run as. */
export interface Owner {
  uid: number;
  gid: number;
}

/** Users that may own a server if the emulator runs as root, since Postgres refuses to run as root. */
const USERS = ['postgres', 'nobody'];

/** Undefined: as the emulator itself. */
export function serverOwner(): Owner | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const users = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'));
  const found = USERS.map((name) => users.find(([user]) => user === name)).find((user) => user !== undefined);
  return found === undefined ? undefined : { uid: Number(found[2]), gid: Number(found[3]) };
}
