import { describe, expect, it } from 'vitest';
import { type OperationsProgress, readOperations } from '../../src/app/fleet/read-operations.ts';
import type { ApiResult, Operation, OperationsPage } from '../../src/ports/control-api.ts';

const NOW = Date.parse('2026-03-02T00:00:00Z');
const HOUR = 3_600_000;
const monotonicMs = () => 0;
const project = (projectId: string) => ({ account: 'default', projectId });

function operation(projectId: string, createdAtMs: number): Operation {
  const base = { operationId: `${projectId}-${createdAtMs}`, projectId, action: 'start_compute', status: 'finished' };
  return { ...base, outcome: 'succeeded', failuresCount: 0, createdAtMs, updatedAtMs: createdAtMs };
}

/** Each project has so many pages of one operation, an hour apart. */
function fakeApi(pages: Record<string, number>, broken: readonly string[] = []) {
  const asked: string[] = [];
  return {
    asked,
    async operationsFrom(
      { projectId }: { projectId: string },
      cursor: string | undefined,
    ): Promise<ApiResult<OperationsPage>> {
      const page = Number(cursor ?? 0);
      asked.push(`${projectId} ${page}`);
      if (broken.includes(projectId)) {
        return { ok: false, error: { code: 'unavailable', route: 'GET /operations', message: 'down' } };
      }
      const has = page < (pages[projectId] ?? 0);
      const operations = has ? [operation(projectId, NOW - page * HOUR)] : [];
      return { ok: true, value: { operations, cursor: has ? String(page + 1) : undefined } };
    },
  };
}

describe('reading operations', () => {
  it('reads the newest page of every project before the second of any', async () => {
    const api = fakeApi({ a: 3, b: 1, c: 2 });
    const seen: string[] = [];
    const read = await readOperations({
      ...{ api, projects: ['a', 'b', 'c'].map(project), sinceMs: 0, nowMs: NOW, monotonicMs, concurrency: 1 },
      onPage: (projectId, operations, complete) => seen.push(`${projectId} ${operations.length} ${complete}`),
    });
    expect(api.asked.slice(0, 3)).toEqual(['a 0', 'b 0', 'c 0']);
    expect(seen.filter((line) => line.startsWith('a'))).toEqual(['a 1 false', 'a 1 false', 'a 1 false', 'a 0 true']);
    expect([...read.states.values()].map((state) => state.read)).toEqual(['all', 'all', 'all']);
    expect(read.errors).toEqual([]);
  });

  it('tells once when the newest page of every project was read, if there is more', async () => {
    const told = async (pages: Record<string, number>) => {
      const api = fakeApi(pages);
      const asked: number[] = [];
      await readOperations({
        ...{ api, projects: ['a', 'b'].map(project), sinceMs: 0, nowMs: NOW, monotonicMs, onPage: () => {} },
        onNewest: async () => void asked.push(api.asked.length),
      });
      return asked;
    };
    expect(await told({ a: 3, b: 1 })).toEqual([2]);
    expect(await told({ a: 0, b: 0 })).toEqual([]);
  });

  it('stops at what is old enough', async () => {
    const api = fakeApi({ a: 100 });
    await readOperations({
      api,
      projects: [project('a')],
      sinceMs: NOW - 2.5 * HOUR,
      nowMs: NOW,
      monotonicMs,
      onPage: () => {},
    });
    expect(api.asked).toEqual(['a 0', 'a 1', 'a 2', 'a 3']);
  });

  it('is resumed where it was stopped', async () => {
    const api = fakeApi({ a: 4 });
    const stop = new AbortController();
    const options = { api, projects: [project('a')], sinceMs: 0, nowMs: NOW, monotonicMs, onPage: () => {} };
    const first = await readOperations({
      ...options,
      signal: stop.signal,
      onProgress: ({ pages }) => pages === 2 && stop.abort(),
    });
    expect(first.states.get('a')).toMatchObject({ read: 'in part', cursor: '2', pages: 2 });
    const second = await readOperations({ ...options, resume: first.states });
    expect(api.asked).toEqual(['a 0', 'a 1', 'a 2', 'a 3', 'a 4']);
    expect(second.states.get('a')?.read).toBe('all');
  });

  it('leaves out a project that cannot be read', async () => {
    const api = fakeApi({ a: 1, b: 1 }, ['b']);
    const options = { api, projects: ['a', 'b'].map(project), sinceMs: 0, nowMs: NOW, monotonicMs, onPage: () => {} };
    const { states, errors } = await readOperations(options);
    expect(errors).toMatchObject([{ code: 'unavailable', account: 'default' }]);
    expect(states.get('a')?.read).toBe('all');
    expect(states.get('b')?.read).toBe('failed');
  });

  it('says how long the rest takes, by what the pages so far have covered', async () => {
    const api = fakeApi({ a: 100 });
    const reported: OperationsProgress[] = [];
    let elapsedMs = 0;
    await readOperations({
      ...{ api, projects: [project('a')], sinceMs: NOW - 10 * HOUR, nowMs: NOW + HOUR, onPage: () => {} },
      onProgress: (progress) => reported.push(progress),
      monotonicMs: () => (elapsedMs += 500),
    });
    // Two pages cover two of eleven hours in a second: nine more take nine halves.
    expect(reported[1]).toEqual({ projectsBegun: 1, projectsDone: 0, projects: 1, pages: 2, leftMs: 4500 });
    expect(reported.at(-1)).toMatchObject({ projectsDone: 1, leftMs: 0 });
  });

  it('does not count pages beyond the limit among those that are left', async () => {
    const reported: OperationsProgress[] = [];
    let elapsedMs = 0;
    await readOperations({
      ...{ api: fakeApi({ a: 100 }), projects: [project('a')], sinceMs: NOW - 10 * HOUR, nowMs: NOW + HOUR },
      ...{ onPage: () => {}, maxPages: 3, onProgress: (progress) => reported.push(progress) },
      monotonicMs: () => (elapsedMs += 500),
    });
    expect(reported.map(({ leftMs }) => leftMs)).toEqual([1000, 500, 0]);
  });

  it('says nothing of the rest before something is known of every project, and then does not exaggerate', async () => {
    // One project has 40 pages, the others one or two: the first eight say nothing of the rest.
    const pages = Object.fromEntries(
      Array.from({ length: 60 }, (_, index) => [`p-${index}`, index === 0 ? 40 : 1 + (index % 2)]),
    );
    const reported: (OperationsProgress & { atMs: number })[] = [];
    let elapsedMs = 0;
    await readOperations({
      ...{
        api: fakeApi(pages),
        projects: Object.keys(pages).map(project),
        sinceMs: NOW - 200 * HOUR,
        nowMs: NOW + HOUR,
      },
      onPage: () => {},
      onProgress: (progress) => reported.push({ ...progress, atMs: elapsedMs }),
      monotonicMs: () => (elapsedMs += 250),
    });
    const estimates = reported.filter(({ leftMs }) => leftMs !== undefined);
    expect(estimates[0]?.projectsBegun).toBe(60);
    expect(reported.filter(({ projectsBegun }) => projectsBegun < 60).some(({ leftMs }) => leftMs !== undefined)).toBe(
      false,
    );
    expect(estimates.at(-1)?.leftMs).toBe(0);
  });
});
