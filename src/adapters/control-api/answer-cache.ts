/**
 * A cache on this machine of the computes, branches and usage that commands read from the control API. An answer is used for five minutes, as
 * long as the list of projects shows no change of its project. Usage is cached by query.
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

const CACHED_MS = 5 * MINUTE_MS;

/** The version of the files' format: files of another version are not read. */
const VERSION = 1;
const FLEET_FILE = 'fleet-read.bin';
const USAGE_FILE = 'usage-read.bin';

interface Cached<Value> {
  atMs: number;
  value: Value;
}

interface CachedProject {
  /** The project's `updatedAtMs` in the list when the answers were read: they are valid while it stays the same. */
  updatedAtMs: number;
  computes?: ComputeList;
  branches?: Branch[];
}

export interface AnswerCache {
  api: ControlApi;
  /** Notes projects that were listed otherwise than through `api`. Cached answers are used only for listed projects. */
  noteListed(projects: Iterable<Project>): void;
  /** The cached answer to this query, if there is one. */
  usage(query: UsageQuery): Promise<UsagePages | undefined>;
  /** The age of the oldest cached answer that was used, in milliseconds; undefined if none was. */
  ageMs(): number | undefined;
}

interface AnswerCacheOptions {
  api: ControlApi;
  folder: string;
  /** Identifies the API and the accounts. Cached answers for another place are not used. */
  place: string;
  now: () => number;
  /** True if cached answers are used instead of requests; false if they are only replaced. */
  usesCache: boolean;
  /** The fleet's file is written only with at least so many projects, the usage file only if an answer has at least so many units. */
  fewestProjects: number;
}

/** Wraps an API. Answers to be cached are written to `folder` when it is closed. A file that can't be read or written is ignored. */
export function createAnswerCache(options: AnswerCacheOptions): AnswerCache {
  const { api } = options;
  const cache = cachedAnswers(options);
  return {
    usage: cache.usage,
    noteListed: cache.noteListed,
    ageMs: cache.ageMs,
    api: {
      ...api,
      async *listProjects(callOptions) {
        for await (const page of api.listProjects(callOptions)) {
          if (page.ok) cache.noteListed(page.value);
          yield page;
        }
      },
      async listComputes(project, callOptions) {
        const before = await cache.part(project.projectId, 'computes');
        if (before) return { ok: true, value: before };
        const answer = await api.listComputes(project, callOptions);
        if (answer.ok) await cache.keepPart(project.projectId, { computes: answer.value });
        return answer;
      },
      async *listBranches(projectId, callOptions) {
        const before = await cache.part(projectId, 'branches');
        if (before) return yield { ok: true, value: before };
        const branches: Branch[] = [];
        for await (const page of api.listBranches(projectId, callOptions)) {
          yield page;
          if (!page.ok) return;
          branches.push(...page.value);
        }
        await cache.keepPart(projectId, { branches });
      },
      async usage(query, callOptions): Promise<ApiResult<UsagePages>> {
        const before = await cache.usage(query);
        if (before) return { ok: true, value: before };
        const answer = await api.usage(query, callOptions);
        if (answer.ok) await cache.keepUsage(query, answer.value);
        return answer;
      },
      async close() {
        await cache.write();
        await api.close();
      },
    },
  };
}

/** The answers in both files, and the age of the oldest that was used. */
function cachedAnswers(options: AnswerCacheOptions) {
  const { now, fewestProjects } = options;
  const fleet = cacheFile<CachedProject>(FLEET_FILE, options);
  const usage = cacheFile<UsagePages>(USAGE_FILE, options);
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
      const cached = (await fleet.all()).get(projectId);
      const value = cached?.value.updatedAtMs === updatedAtMs.get(projectId) ? cached?.value[part] : undefined;
      if (cached && value) noteAge(cached.atMs);
      return value;
    },
    /** The parts of a project share one entry, which has the instant of the oldest part. */
    async keepPart(projectId: string, part: Pick<CachedProject, 'computes' | 'branches'>): Promise<void> {
      const listedMs = updatedAtMs.get(projectId);
      if (listedMs === undefined) return;
      const before = (await fleet.all()).get(projectId);
      const valid = before?.value.updatedAtMs === listedMs ? before : undefined;
      const value = { ...valid?.value, ...part, updatedAtMs: listedMs };
      await fleet.keep(projectId, { atMs: valid?.atMs ?? now(), value });
    },
    async usage(query: UsageQuery): Promise<UsagePages | undefined> {
      const cached = (await usage.all()).get(JSON.stringify(query));
      if (cached) noteAge(cached.atMs);
      return cached?.value;
    },
    keepUsage: (query: UsageQuery, value: UsagePages) => usage.keep(JSON.stringify(query), { atMs: now(), value }),
    async write(): Promise<void> {
      await fleet.write((all) => all.size >= fewestProjects);
      await usage.write((all) => [...all.values()].some(({ value }) => value.units.length >= fewestProjects));
    },
  };
}

/** Deletes the cached fleet, before a command changes it. */
export async function forgetCachedFleet(folder: string): Promise<void> {
  await rm(join(folder, FLEET_FILE), { force: true }).catch(() => {});
}

/** A file's entries of the last five minutes, read on first use; without `usesCache` only those that are kept from now on. */
function cacheFile<Value>(file: string, { folder, place, now, usesCache }: AnswerCacheOptions) {
  const path = join(folder, file);
  let reading: Promise<Map<string, Cached<Value>>> | undefined;
  let isChanged = false;

  async function read(): Promise<Map<string, Cached<Value>>> {
    const bytes = await readFile(path).catch(() => undefined);
    const found = bytes && deserialized(bytes);
    if (found?.version !== VERSION || found.place !== place) return new Map();
    const entries = found.entries as ReadonlyMap<string, Cached<Value>>;
    return new Map([...entries].filter(([, { atMs }]) => atMs <= now() && atMs > now() - CACHED_MS));
  }

  const all = () => {
    reading ??= usesCache ? read() : Promise.resolve(new Map());
    return reading;
  };
  return {
    all,
    async keep(key: string, entry: Cached<Value>): Promise<void> {
      isChanged = true;
      (await all()).set(key, entry);
    },
    async write(isWorthKeeping: (entries: ReadonlyMap<string, Cached<Value>>) => boolean): Promise<void> {
      if (!isChanged) return;
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
