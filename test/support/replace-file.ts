import { rename, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

/** Replaces a file as a whole, as deployments do: a running daemon reads it at once. What is changed in place waits for 10 s without a change. */
export async function replaceFile(path: string, text: string): Promise<void> {
  const next = join(dirname(path), `.${basename(path)}.next`);
  await writeFile(next, text);
  await rename(next, path);
}
