/**
 * Keeps on this machine what commands have read of the control API: for five minutes the next command asks only for the list of projects, and
 * for the projects that the list shows as changed.
 */
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { deserialize, serialize } from 'node:v8';
import { MINUTE_MS } from '../../domain/time/units.ts';
import type { ApiResult, Branch, ComputeList, ControlApi, UsagePages, UsageQuery } from '../../ports/control-api.ts';

const SERVES_MS = 5 * MINUTE_MS;

/** Counts the forms of the files: others are not read. */
const VERSION = 1;
const FLEET_FILE = 'fleet-read.bin';
const USAGE_FILE = 'usage-read.bin';

interface Kept<Value> {
  atMs: number;
  value: Value;
}

interface KeptProject {
  /** As the list showed it when this was read. */
  updatedAtMs: number;
  computes?: ComputeList;
  branches?: Branch[];
}

export interface ReadLately {
  api: ControlApi;
  /** The answer to this question, if it is kept. */
  usage(query: UsageQuery): Promise<UsagePages | undefined>;
  /** How old the oldest part is that an earlier command has read, in milliseconds; undefined if all was read now. */
  ageMs(): number | undefined;
}

/**
 * Wraps an API whose answers are kept in `folder` when it is closed. With `serves`, kept answers stand for those of the API; without it they
 * are replaced. A file that can't be read or written is ignored.
 */
export function createReadLately(options: {
  api: ControlApi;
  folder: string;
  /** What is asked, and by which accounts: what was read of another place is not served. */
  place: string;
  now: () => number;
  serves: boolean;
  /** Of fewer projects nothing is kept. */
  fewestProjects: number;
}): ReadLately {
  const { api, now, fewestProjects } = options;
  const fleet = keptIn<KeptProject>(FLEET_FILE, options);
  const usage = keptIn<UsagePages>(USAGE_FILE, options);
  const updatedAtMs = new Map<string, number>();
  let oldestMs: number | undefined;

  async function keptPart<Part extends 'computes' | 'branches'>(projectId: string, part: Part) {
    const kept = (await fleet.all()).get(projectId);
    const value = kept?.value.updatedAtMs === updatedAtMs.get(projectId) ? kept?.value[part] : undefined;
    if (kept && value) oldestMs = Math.min(oldestMs ?? kept.atMs, kept.atMs);
    return value;
  }

  /** The parts of a project are as old as the oldest. */
  async function keepPart(projectId: string, part: Pick<KeptProject, 'computes' | 'branches'>): Promise<void> {
    const listedMs = updatedAtMs.get(projectId);
    if (listedMs === undefined) return;
    const before = (await fleet.all()).get(projectId);
    const same = before?.value.updatedAtMs === listedMs ? before : undefined;
    await fleet.keep(projectId, {
      atMs: same?.atMs ?? now(),
      value: { ...same?.value, ...part, updatedAtMs: listedMs },
    });
  }

  return {
    usage: async (query) => (await usage.all()).get(JSON.stringify(query))?.value,
    ageMs: () => (oldestMs === undefined ? undefined : now() - oldestMs),
    api: {
      ...api,
      async *listProjects(asked) {
        for await (const page of api.listProjects(asked)) {
          if (page.ok) for (const project of page.value) updatedAtMs.set(project.projectId, project.updatedAtMs);
          yield page;
        }
      },
      async listComputes(project, asked) {
        const kept = await keptPart(project.projectId, 'computes');
        if (kept) return { ok: true, value: kept };
        const answer = await api.listComputes(project, asked);
        if (answer.ok) await keepPart(project.projectId, { computes: answer.value });
        return answer;
      },
      async *listBranches(projectId, asked) {
        const kept = await keptPart(projectId, 'branches');
        if (kept) return yield { ok: true, value: kept };
        const branches: Branch[] = [];
        for await (const page of api.listBranches(projectId, asked)) {
          yield page;
          if (!page.ok) return;
          branches.push(...page.value);
        }
        await keepPart(projectId, { branches });
      },
      async usage(query, asked): Promise<ApiResult<UsagePages>> {
        const key = JSON.stringify(query);
        const kept = (await usage.all()).get(key);
        if (kept) return { ok: true, value: kept.value };
        const answer = await api.usage(query, asked);
        if (answer.ok) await usage.keep(key, { atMs: now(), value: answer.value });
        return answer;
      },
      async close() {
        await fleet.write((all) => all.size >= fewestProjects);
        await usage.write((all) => [...all.values()].some(({ value }) => value.units.length >= fewestProjects));
        await api.close();
      },
    },
  };
}

/** Deletes what is kept of the fleet, before something changes it. */
export async function forgetReadLately(folder: string): Promise<void> {
  await rm(join(folder, FLEET_FILE), { force: true }).catch(() => {});
}

type KeptInOptions = Pick<Parameters<typeof createReadLately>[0], 'folder' | 'place' | 'now' | 'serves'>;

/** The entries of a file that are young enough, read on first use; none if they don't serve. */
function keptIn<Value>(file: string, { folder, place, now, serves }: KeptInOptions) {
  const path = join(folder, file);
  let reading: Promise<Map<string, Kept<Value>>> | undefined;
  let isNew = false;

  async function read(): Promise<Map<string, Kept<Value>>> {
    const bytes = await readFile(path).catch(() => undefined);
    const found = bytes && deserialized(bytes);
    if (found?.version !== VERSION || found.place !== place) return new Map();
    const entries = found.entries as ReadonlyMap<string, Kept<Value>>;
    return new Map([...entries].filter(([, { atMs }]) => atMs <= now() && atMs > now() - SERVES_MS));
  }

  const all = () => {
    reading ??= serves ? read() : Promise.resolve(new Map());
    return reading;
  };
  return {
    all,
    async keep(key: string, entry: Kept<Value>): Promise<void> {
      isNew = true;
      (await all()).set(key, entry);
    },
    async write(isWorthKeeping: (entries: ReadonlyMap<string, Kept<Value>>) => boolean): Promise<void> {
      if (!isNew) return;
      const entries = await all();
      if (!isWorthKeeping(entries)) return;
      const unfinished = `${path}.${process.pid}`;
      try {
        await mkdir(folder, { recursive: true, mode: 0o700 });
        await writeFile(unfinished, serialize({ version: VERSION, place, entries }), { mode: 0o600 });
        await rename(unfinished, path);
      } catch {
        await rm(unfinished, { force: true }).catch(() => {});
      }
    },
  };
}

function deserialized(bytes: Buffer): { version?: unknown; place?: unknown; entries?: unknown } | undefined {
  try {
    return deserialize(bytes) ?? undefined;
  } catch {
    return undefined;
  }
}
