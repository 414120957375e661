import { rename, rm, writeFile } from 'node:fs/promises';

/**
 * Replaces a file atomically: readers see the old content until the new file is complete. After an error, which is thrown, no temporary file
 * remains. With `flush`, the content survives a crash of the machine.
 */
export async function replaceFile(
  path: string,
  content: string | Uint8Array | AsyncIterable<string>,
  { mode, flush }: { mode?: number | undefined; flush?: boolean } = {},
): Promise<void> {
  const unfinished = `${path}.${process.pid}.tmp`;
  try {
    // An earlier process with the same id may have been killed before it renamed its file.
    await rm(unfinished, { force: true });
    await writeFile(unfinished, content, { flag: 'wx', mode, ...(flush && { flush }) });
    await rename(unfinished, path);
  } catch (error) {
    await rm(unfinished, { force: true }).catch(() => {});
    throw error;
  }
}
