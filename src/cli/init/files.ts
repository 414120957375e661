import { existsSync } from 'node:fs';
import { mkdir, rename, unlink, writeFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { UserError } from '../fail.ts';

/** A file that is to be made, relative to the working folder. */
export interface NewFile {
  path: string;
  text: string;
}

/** Refuses to go on where something is there already that would be lost; `instead` says what to do. */
export function refuseIfThere(cwd: string, paths: readonly string[], instead: (them: string) => string): void {
  const there = paths.filter((path) => existsSync(resolve(cwd, path)));
  if (there.length === 0) return;
  const [are, them] = there.length === 1 ? ['is', 'it'] : ['are', 'them'];
  throw new UserError(`${there.join(' and ')} ${are} there already; nothing was done, ${instead(them)}`);
}

/** Writes the files in their order, each whole or not at all. */
export async function writeFiles(cwd: string, files: readonly NewFile[]): Promise<void> {
  for (const { path, text } of files) {
    const file = resolve(cwd, path);
    const unfinished = `${file}.${process.pid}.tmp`;
    try {
      await mkdir(dirname(file), { recursive: true });
      await writeFile(unfinished, text, { flag: 'wx' });
      await rename(unfinished, file);
    } catch (error) {
      await unlink(unfinished).catch(() => {});
      const code = error instanceof Error && 'code' in error ? String(error.code) : 'error';
      throw new UserError(`${path} can not be written (${code}): check the folder and its permissions`);
    }
  }
}
