import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createAnswerCache, forgetCachedFleet } from '../../src/adapters/control-api/answer-cache.ts';
import { createReadOnlyApi } from '../../src/adapters/control-api/read-only-api.ts';
import { readFleet } from '../../src/app/fleet/read-fleet.ts';
import type { ControlApi, UsageQuery } from '../../src/ports/control-api.ts';
import { aCompute } from '../support/builders.ts';

const NOW_MS = Date.parse('2026-11-26T12:00:00Z');
const MINUTE_MS = 60_000;
const IDS = ['a', 'b', 'c'];
const PROJECT = { account: 'default', name: 'one', regionId: 'r' };
const QUERY: UsageQuery = {
  ...{ account: 'default', organization: 'org', level: 'projects', granularity: 'hourly' },
  ...{ fromMs: 0, toMs: 3_600_000, metrics: ['compute_unit_seconds'] },
};

let folder: string;
const updated = new Map<string, number>();
const sizes = new Map<string, number>();

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'ebb-answer-cache-'));
  for (const id of IDS) {
    updated.set(id, 1);
    sizes.set(id, 1);
  }
});

afterEach(() => rm(folder, { recursive: true }));

/** What a command reads: the fleet with its branches, and usage. */
async function command({
  atMs = NOW_MS,
  usesCache = true,
  fewestProjects = 3,
  place = 'https://api.test',
  into = folder,
} = {}) {
  const requests: string[] = [];
  const api = apiOf(requests);
  const cache = createAnswerCache({ api, folder: into, place, now: () => atMs, usesCache, fewestProjects });
  const fleet = await readFleet({ api: cache.api, readBranches: true });
  const usage = await cache.api.usage(QUERY);
  const ageMs = cache.ageMs();
  await cache.api.close();
  return { requests, ageMs, usage, sizes: fleet.computes.map(({ minCu }) => minCu), fleet };
}

function apiOf(requests: string[]): ControlApi {
  const api = createReadOnlyApi(
    IDS.map((id) => ({
      project: { account: 'default', projectId: id, name: id, regionId: 'r', updatedAtMs: updated.get(id) ?? 0 },
      computes: [aCompute({ projectId: id, computeId: `ep-${id}`, branchId: `br-${id}`, minCu: sizes.get(id) ?? 1 })],
      branches: { ok: true, value: [{ branchId: `br-${id}`, name: 'main', isDefault: true, isProtected: false }] },
    })),
    'the test',
  );
  return {
    ...api,
    listComputes(project, options) {
      requests.push(`computes ${project.projectId}`);
      return api.listComputes(project, options);
    },
    listBranches(projectId, options) {
      requests.push(`branches ${projectId}`);
      return api.listBranches(projectId, options);
    },
    async usage() {
      requests.push('usage');
      const units = IDS.map((projectId) => ({
        ...{ projectId, branchId: null },
        buckets: new Map([[0, { compute_unit_seconds: 900 }]]),
      }));
      return { ok: true, value: { units, plans: new Map([[0, 'scale']]) } };
    },
  };
}

describe('what a command has read of the control API', () => {
  it('serves the next for five minutes, which says how old it is', async () => {
    const first = await command();
    expect(first).toMatchObject({ ageMs: undefined });
    expect(first.requests).toHaveLength(7);
    const next = await command({ atMs: NOW_MS + 4 * MINUTE_MS });
    expect(next).toMatchObject({ requests: [], ageMs: 4 * MINUTE_MS, fleet: first.fleet, usage: first.usage });
    expect((await command({ atMs: NOW_MS + 5 * MINUTE_MS })).requests).toHaveLength(7);
  });

  it('is read again of a project that the list shows as changed', async () => {
    await command();
    updated.set('b', 2);
    sizes.set('b', 4);
    const next = await command({ atMs: NOW_MS + MINUTE_MS });
    expect(next).toMatchObject({ requests: ['computes b', 'branches b'], sizes: [1, 4, 1] });
  });

  it('is read again and replaced by a command that wants the present', async () => {
    await command();
    sizes.set('a', 2);
    expect((await command({ atMs: NOW_MS + MINUTE_MS, usesCache: false })).sizes).toEqual([2, 1, 1]);
    const next = await command({ atMs: NOW_MS + 5 * MINUTE_MS });
    expect(next).toMatchObject({ requests: [], ageMs: 4 * MINUTE_MS, sizes: [2, 1, 1] });
  });

  it.each([
    ['of a small fleet', { fewestProjects: 4 }, {}],
    ['for another place', {}, { place: 'https://other.test' }],
    ['from the future', {}, { atMs: NOW_MS - 1 }],
  ])('does not serve %s', async (_what, before, after) => {
    await command(before);
    expect((await command(after)).requests).toHaveLength(7);
  });

  it('serves names of branches beside a daemon, whose list is in the store', async () => {
    await command();
    const requests: string[] = [];
    const place = 'https://api.test';
    const cache = createAnswerCache({
      ...{ api: apiOf(requests), folder, place, now: () => NOW_MS, usesCache: true, fewestProjects: 3 },
    });
    cache.noteListed(
      ['a', 'b'].map((projectId) => ({ ...PROJECT, projectId, updatedAtMs: projectId === 'a' ? 1 : 2 })),
    );
    for (const id of ['a', 'b']) for await (const _page of cache.api.listBranches(id));
    expect(requests).toEqual(['branches b']);
  });

  it('is forgotten of the fleet before a change, not of its usage', async () => {
    await command();
    await forgetCachedFleet(folder);
    expect((await command()).requests).toEqual(expect.not.arrayContaining(['usage']));
    expect((await command()).requests).toEqual([]);
  });

  it('is read again where the file is broken, and where nothing can be kept', async () => {
    await command();
    await writeFile(join(folder, 'fleet-read.bin'), 'broken');
    await writeFile(join(folder, 'usage-read.bin'), (await readFile(join(folder, 'usage-read.bin'))).subarray(0, 40));
    expect((await command()).requests).toHaveLength(7);
    const into = join(folder, 'fleet-read.bin', 'in-a-file');
    expect((await command({ into })).sizes).toEqual([1, 1, 1]);
    expect((await command({ into })).requests).toHaveLength(7);
  });
});
