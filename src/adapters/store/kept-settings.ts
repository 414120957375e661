import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { z } from 'zod';
import { parseJson } from '../../common/result.ts';
import type { SettingsKeeper } from '../../ports/verify.ts';

const Kept = z.object({
  account: z.string(),
  projectId: z.string(),
  computeId: z.string(),
  settings: z.object({ minCu: z.number(), maxCu: z.number(), suspendTimeoutSeconds: z.number() }),
});

/** In a file of this machine. Reading rejects with an error for people where the file is broken. */
export function createSettingsFile(path: string): SettingsKeeper {
  return {
    async keep(kept) {
      await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      const unfinished = `${path}.${process.pid}`;
      await writeFile(unfinished, `${JSON.stringify(kept)}\n`, { mode: 0o600, flush: true });
      await rename(unfinished, path);
    },
    async read() {
      const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') return undefined;
        throw error;
      });
      if (text === undefined) return undefined;
      const kept = Kept.safeParse(parseJson(text));
      if (!kept.success) throw new Error(`${path} is broken: set the compute by hand, then delete it`);
      return kept.data;
    },
    remove: () => rm(path, { force: true }),
  };
}
