import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { z } from 'zod';
import { parseJson, type Result } from '../../common/result.ts';

import type { StoredOverrides } from '../../ports/store.ts';
import type { Log } from '../../ports/telemetry.ts';
import { createOverrideReaders, type EntryReader } from './override-json.ts';

const Entries = z.array(z.looseObject({ id: z.string() }));
const Kept = z.looseObject({ holds: Entries, freezes: Entries });

/** Holds and freezes in a file of this machine, which outlives a lost store. */
export interface OverrideFile {
  /** Undefined where nothing has been kept yet. */
  read(): Promise<Result<StoredOverrides | undefined>>;
  /** Replaces the file's content in one step. Rejects if that is not possible. */
  keep(overrides: StoredOverrides): Promise<void>;
}

export function createOverrideFile({ path, log }: { path: string; log: Log }): OverrideFile {
  const readers = createOverrideReaders({ log });
  let last: Promise<void> = Promise.resolve();

  async function replace(overrides: StoredOverrides): Promise<void> {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    const unfinished = `${path}.${process.pid}`;
    await writeFile(unfinished, `${JSON.stringify(overrides)}\n`, { mode: 0o600, flush: true });
    await rename(unfinished, path);
  }

  return {
    async read() {
      const text = await readIfThere(path);
      if (typeof text === 'object') return { ok: false, problem: `${path}: can't be read (${text.code}); ${REMEDY}` };
      if (text === undefined) return { ok: true, value: undefined };
      const kept = Kept.safeParse(parseJson(text));
      if (!kept.success) return { ok: false, problem: `${path}: is broken; ${REMEDY}` };
      const { holds, freezes } = kept.data;
      const value = { holds: entries(holds, readers.hold), freezes: entries(freezes, readers.freeze) };
      return { ok: true, value };
    },
    keep(overrides) {
      last = last.catch(() => {}).then(() => replace(overrides));
      return last;
    },
  };
}

const REMEDY =
  'it holds the freezes and holds that people have set: see that none is missing from the store (ebb status), then delete it';

async function readIfThere(path: string): Promise<string | undefined | { code: string }> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? 'error';
    return code === 'ENOENT' ? undefined : { code };
  }
}

function entries<Entry>(kept: z.infer<typeof Entries>, reader: EntryReader<Entry>): Entry[] {
  return kept.flatMap((entry) => reader(entry.id, JSON.stringify(entry)) ?? []);
}
