import { rename, unlink, writeFile } from 'node:fs/promises';
import { UserError } from '../fail.ts';

/** Writes a whole file or none: readers see the old one meanwhile. */
export async function writeWhole(path: string, text: string, flag = '--out'): Promise<void> {
  const unfinished = `${path}.${process.pid}.tmp`;
  try {
    await writeFile(unfinished, text, { flag: 'wx' });
    await rename(unfinished, path);
  } catch (error) {
    await unlink(unfinished).catch(() => {});
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'error';
    throw new UserError(`${flag}: ${path} can not be written (${code}): check the path`);
  }
}
