/** Files in ebb's state directory on this machine. */

import { mkdir, readFile, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { z } from 'zod';
import { replaceFile } from '../../common/replace-file.ts';
import { parseJson, type Result } from '../../common/result.ts';
import type { AskedPostgres } from '../../domain/awake/clients.ts';
import type { StoredOverrides } from '../../ports/store.ts';
import type { Log } from '../../ports/telemetry.ts';
import type { SettingsKeeper } from '../../ports/verify.ts';
import { ignoreMissing } from './audit-file.ts';
import { createOverrideReaders, type EntryReader } from './override-json.ts';

/** Writes a JSON file that only its owner can read. Creates the folder. */
async function keepJson(path: string, value: unknown): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await replaceFile(path, `${JSON.stringify(value)}\n`, { mode: 0o600, flush: true });
}

const Client = z.object({
  kind: z.enum(['periodic', 'frequent', 'irregular', 'open_transaction', 'long_query', 'replication']),
  user: z.string(),
  application: z.string().optional(),
  queries: z.array(z.object({ queryId: z.string().optional(), text: z.string() })),
  periodMs: z.number().optional(),
  visits: z.number(),
  share: z.number(),
  confidence: z.enum(['high', 'low']),
});

const Asked = z.record(
  z.string(),
  z.object({
    atMs: z.number(),
    samples: z.number(),
    sampledMs: z.number(),
    keptAwakeMs: z.number(),
    clients: z.array(Client),
    sessions: z.object({ idleInTransactionMs: z.number().optional(), replicationConnections: z.number() }),
    sawStatements: z.boolean(),
    until: z.enum(['time', 'alone', 'asleep', 'interrupted', 'failed']),
  }),
);

/** The results of the last `--ask-postgres` of each Postgres, by compute id. */
export function createAskedFile(path: string) {
  return {
    /** Empty if the file is missing or broken: then each Postgres is asked again. */
    async read(): Promise<Map<string, AskedPostgres>> {
      const text = await readFile(path, 'utf8').catch(() => '');
      const parsed = Asked.safeParse(parseJson(text));
      return new Map(parsed.success ? (Object.entries(parsed.data) as [string, AskedPostgres][]) : []);
    },
    write: (asked: ReadonlyMap<string, AskedPostgres>) => keepJson(path, Object.fromEntries(asked)),
  };
}

const Settings = z.object({
  account: z.string(),
  projectId: z.string(),
  computeId: z.string(),
  settings: z.object({ minCu: z.number(), maxCu: z.number(), suspendTimeoutSeconds: z.number() }),
});

/** The settings of a compute that `ebb verify` must restore. If the file is broken, `read` rejects, and says what to do. */
export function createKeptSettingsFile(path: string): SettingsKeeper {
  return {
    keep: (kept) => keepJson(path, kept),
    async read() {
      const text = await readFile(path, 'utf8').catch(ignoreMissing);
      if (text === undefined) return undefined;
      const parsed = Settings.safeParse(parseJson(text));
      if (!parsed.success) throw new Error(`${path} is broken: set the compute by hand, then delete the file`);
      return parsed.data;
    },
    remove: () => rm(path, { force: true }),
  };
}

const Entries = z.array(z.looseObject({ id: z.string() }));
const Overrides = z.looseObject({ holds: Entries, freezes: Entries });

/** A copy of holds and freezes that outlives a lost store. */
export interface OverrideFile {
  /** Undefined if there is no file. */
  read(): Promise<Result<StoredOverrides | undefined>>;
  keep(overrides: StoredOverrides): Promise<void>;
}

export function createOverrideFile({ path, log }: { path: string; log: Log }): OverrideFile {
  const readers = createOverrideReaders({ log });
  let lastWrite: Promise<void> = Promise.resolve();

  return {
    async read() {
      const text = await readIfThere(path);
      if (typeof text === 'object') return { ok: false, problem: `${path}: can't be read (${text.code}); ${REMEDY}` };
      if (text === undefined) return { ok: true, value: undefined };
      const parsed = Overrides.safeParse(parseJson(text));
      if (!parsed.success) return { ok: false, problem: `${path}: is broken; ${REMEDY}` };
      const { holds, freezes } = parsed.data;
      const value = { holds: entries(holds, readers.hold), freezes: entries(freezes, readers.freeze) };
      return { ok: true, value };
    },
    keep(overrides) {
      lastWrite = lastWrite.catch(() => {}).then(() => keepJson(path, overrides));
      return lastWrite;
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
