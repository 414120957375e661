import { cp, mkdir, mkdtemp, readFile, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PGlite } from '@electric-sql/pglite';

const MODULES = fileURLToPath(new URL('../../node_modules', import.meta.url));

export interface EmbeddedFolder {
  path: string;
  remove(): Promise<void>;
}

/** A folder for `embedded:DIR` in which a database waits already, empty: to make one takes seconds of computing. */
export async function embeddedFolder(): Promise<EmbeddedFolder> {
  const folder = await temporaryFolder();
  await copyDatabase(folder.path);
  return folder;
}

/** Puts an empty database into a folder, as the first start there would. */
export async function copyDatabase(folder: string): Promise<void> {
  await cp(await template(), folder, { recursive: true });
}

export async function temporaryFolder(): Promise<EmbeddedFolder> {
  const path = await mkdtemp(join(tmpdir(), 'ebb-embedded-'));
  return { path, remove: () => rm(path, { recursive: true, force: true }) };
}

/** The folder to copy from, made once for each version of PGlite, also when several tests ask at once. */
async function template(): Promise<string> {
  const manifest = await readFile(join(MODULES, '@electric-sql/pglite/package.json'), 'utf8');
  const path = join(MODULES, '.cache', `ebb-pglite-${JSON.parse(manifest).version}`);
  if (await exists(path)) return path;
  await mkdir(join(MODULES, '.cache'), { recursive: true });
  const making = await mkdtemp(`${path}-`);
  const database = await PGlite.create(join(making, 'db'));
  await database.close();
  try {
    await rename(making, path);
  } catch {
    await rm(making, { recursive: true, force: true });
  }
  return path;
}

async function exists(path: string): Promise<boolean> {
  return readFile(join(path, 'db', 'PG_VERSION')).then(
    () => true,
    () => false,
  );
}
