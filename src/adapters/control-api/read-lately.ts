/**
 * Keeps on this machine what commands have read from the control API. For five minutes, the next command requests only the list of projects
 * and the projects that the list shows as changed.
 */
import { mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { deserialize, serialize } from 'node:v8';
import { replaceFile } from '../../common/replace-file.ts';
import { MINUTE_MS } from '../../domain/time/units.ts';
import type {
  ApiResult,
  Branch,
  ComputeList,
  ControlApi,
  Project,
  UsagePages,
  UsageQuery,
} from '../../ports/control-api.ts';

const KEPT_MS = 5 * MINUTE_MS;

/** The version of the files' format: files of another version are not read. */
const VERSION = 1;
const FLEET_FILE = 'fleet-read.bin';
const USAGE_FILE = 'usage-read.bin';

interface Kept<Value> {
  atMs: number;
  value: Value;
}

interface KeptProject {
  /** The value in the list when this was read. */
  updatedAtMs: number;
  computes?: ComputeList;
  branches?: Branch[];
}

export interface ReadLately {
  api: ControlApi;
  /** Notes projects from another list, so that kept answers about those that have not changed are used. */
  noteListed(projects: Iterable<Project>): void;
  /** The answer to this question, if it is kept. */
  usage(query: UsageQuery): Promise<UsagePages | undefined>;
  /** How old the oldest part is that an earlier command has read, in milliseconds; undefined if all was read now. */
  ageMs(): number | undefined;
}

interface ReadLatelyOptions {
  api: ControlApi;
  folder: string;
  /** Identifies the API and the accounts. Answers that were kept for another place are not used. */
  place: string;
  now: () => number;
  /** True if kept answers are used instead of requests; false if they are only replaced. */
  usesKept: boolean;
  /** For fewer projects nothing is kept. */
  fewestProjects: number;
}

/** Wraps an API whose answers are kept in `folder` when it is closed. A file that can't be read or written is ignored. */
export function createReadLately(options: ReadLatelyOptions): ReadLately {
  const { api } = options;
  const kept = keptAnswers(options);
  return {
    usage: kept.usage,
    noteListed: kept.noteListed,
    ageMs: kept.ageMs,
    api: {
      ...api,
      async *listProjects(asked) {
        for await (const page of api.listProjects(asked)) {
          if (page.ok) kept.noteListed(page.value);
          yield page;
        }
      },
      async listComputes(project, asked) {
        const before = await kept.part(project.projectId, 'computes');
        if (before) return { ok: true, value: before };
        const answer = await api.listComputes(project, asked);
        if (answer.ok) await kept.keepPart(project.projectId, { computes: answer.value });
        return answer;
      },
      async *listBranches(projectId, asked) {
        const before = await kept.part(projectId, 'branches');
        if (before) return yield { ok: true, value: before };
        const branches: Branch[] = [];
        for await (const page of api.listBranches(projectId, asked)) {
          yield page;
          if (!page.ok) return;
          branches.push(...page.value);
        }
        await kept.keepPart(projectId, { branches });
      },
      async usage(query, asked): Promise<ApiResult<UsagePages>> {
        const before = await kept.usage(query);
        if (before) return { ok: true, value: before };
        const answer = await api.usage(query, asked);
        if (answer.ok) await kept.keepUsage(query, answer.value);
        return answer;
      },
      async close() {
        await kept.write();
        await api.close();
      },
    },
  };
}

/** The answers of both files, and how old those are that were used. */
function keptAnswers(options: ReadLatelyOptions) {
  const { now, fewestProjects } = options;
  const fleet = keptIn<KeptProject>(FLEET_FILE, options);
  const usage = keptIn<UsagePages>(USAGE_FILE, options);
  const updatedAtMs = new Map<string, number>();
  let oldestMs: number | undefined;
  const noteAge = (atMs: number) => {
    oldestMs = Math.min(oldestMs ?? atMs, atMs);
  };
  return {
    ageMs: () => (oldestMs === undefined ? undefined : now() - oldestMs),
    noteListed(projects: Iterable<Project>): void {
      for (const project of projects) updatedAtMs.set(project.projectId, project.updatedAtMs);
    },
    async part<Part extends 'computes' | 'branches'>(projectId: string, part: Part) {
      const kept = (await fleet.all()).get(projectId);
      const value = kept?.value.updatedAtMs === updatedAtMs.get(projectId) ? kept?.value[part] : undefined;
      if (kept && value) noteAge(kept.atMs);
      return value;
    },
    /** The parts of a project are as old as the oldest. */
    async keepPart(projectId: string, part: Pick<KeptProject, 'computes' | 'branches'>): Promise<void> {
      const listedMs = updatedAtMs.get(projectId);
      if (listedMs === undefined) return;
      const before = (await fleet.all()).get(projectId);
      const same = before?.value.updatedAtMs === listedMs ? before : undefined;
      const value = { ...same?.value, ...part, updatedAtMs: listedMs };
      await fleet.keep(projectId, { atMs: same?.atMs ?? now(), value });
    },
    async usage(query: UsageQuery): Promise<UsagePages | undefined> {
      const kept = (await usage.all()).get(JSON.stringify(query));
      if (kept) noteAge(kept.atMs);
      return kept?.value;
    },
    keepUsage: (query: UsageQuery, value: UsagePages) => usage.keep(JSON.stringify(query), { atMs: now(), value }),
    async write(): Promise<void> {
      await fleet.write((all) => all.size >= fewestProjects);
      await usage.write((all) => [...all.values()].some(({ value }) => value.units.length >= fewestProjects));
    },
  };
}

/** Deletes the kept fleet, before a command changes it. */
export async function forgetReadLately(folder: string): Promise<void> {
  await rm(join(folder, FLEET_FILE), { force: true }).catch(() => {});
}

/** The entries of a file that are young enough, read on first use; none unless kept answers are used. */
function keptIn<Value>(file: string, { folder, place, now, usesKept }: ReadLatelyOptions) {
  const path = join(folder, file);
  let reading: Promise<Map<string, Kept<Value>>> | undefined;
  let isNew = false;

  async function read(): Promise<Map<string, Kept<Value>>> {
    const bytes = await readFile(path).catch(() => undefined);
    const found = bytes && deserialized(bytes);
    if (found?.version !== VERSION || found.place !== place) return new Map();
    const entries = found.entries as ReadonlyMap<string, Kept<Value>>;
    return new Map([...entries].filter(([, { atMs }]) => atMs <= now() && atMs > now() - KEPT_MS));
  }

  const all = () => {
    reading ??= usesKept ? read() : Promise.resolve(new Map());
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
      await mkdir(folder, { recursive: true, mode: 0o700 })
        .then(() => replaceFile(path, serialize({ version: VERSION, place, entries }), { mode: 0o600 }))
        .catch(() => {});
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
