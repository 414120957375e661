import { rename, rm, writeFile } from 'node:fs/promises';

/**
 * Replaces a file atomically: readers see the old one until the new one is whole. Leaves nothing beside it after an error, which is thrown.
 * With `flush`, the content survives a crash of the machine.
 */
export async function replaceFile(
  path: string,
  content: string | Uint8Array | AsyncIterable<string>,
  { mode, flush }: { mode?: number | undefined; flush?: boolean } = {},
): Promise<void> {
  const unfinished = `${path}.${process.pid}.tmp`;
  try {
    // An earlier process with this id may have been killed here.
    await rm(unfinished, { force: true });
    await writeFile(unfinished, content, { flag: 'wx', mode, ...(flush && { flush }) });
    await rename(unfinished, path);
  } catch (error) {
    await rm(unfinished, { force: true }).catch(() => {});
    throw error;
  }
}
