import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createControlApi } from '../../src/adapters/control-api/control-api.ts';
import { createSnapshotApi } from '../../src/adapters/control-api/snapshot.ts';
import { type FleetProgress, readFleet } from '../../src/app/fleet/read-fleet.ts';
import type { ControlApi } from '../../src/ports/control-api.ts';
import { REAL } from '../support/builders.ts';
import { type Platform, startTestPlatform } from '../support/platform.ts';

const NO_METRICS = { increment: () => {}, set: () => {}, clear: () => {}, observe: () => {} };
const BRANCHES = '/projects/{project_id}/branches';
const COMPUTES = '/projects/{project_id}/endpoints';

let platform: Platform;
let api: ControlApi;

beforeAll(async () => {
  platform = await startTestPlatform({
    docs: { branch: { name: 'main', default: true, protected: true } },
    shop: { branch: { name: 'trunk', default: false } },
  });
  api = createControlApi({
    baseUrl: platform.url,
    accounts: [{ name: 'red', key: () => platform.apiKey }],
    metrics: NO_METRICS,
    ...REAL,
  });
});

afterAll(async () => {
  await api.close();
  await platform.close();
});

describe('readFleet', () => {
  it('reads every project and compute once, with the names and roles of branches', async () => {
    const seen: FleetProgress[] = [];
    const survey = await readFleet({ api, readBranches: true, onProgress: (progress) => void seen.push(progress) });
    expect(survey).toMatchObject({ branchNamesRefused: [], errors: [] });
    expect(survey.projects.map(({ projectId, pgVersion }) => [projectId, pgVersion])).toEqual([
      ['docs', 17],
      ['shop', 17],
    ]);
    expect(survey.computes).toMatchObject([
      { computeId: 'ep-docs', account: 'red', branchName: 'main', branchRoles: ['default', 'protected'] },
      { computeId: 'ep-shop', account: 'red', branchName: 'trunk', branchRoles: [] },
    ]);
    expect(seen.at(-1)).toEqual({ projectsRead: 2, projects: 2, computes: 2 });
    const routes = (await platform.requests()).map(({ path }) => path.replace('/api/v2/projects', ''));
    expect(new Set(routes).size).toBe(routes.length);
    expect(routes).toHaveLength(6);
  });

  it('does without branches where nobody asks for them, or where the key may not list them', async () => {
    const { computes } = await readFleet({ api, readBranches: false });
    expect(computes[0]).not.toHaveProperty('branchName');
    await platform.control('faults', { kind: 'status', status: 403, route: BRANCHES });
    const refused = await readFleet({ api, readBranches: true });
    await platform.clearFaults();
    expect(refused).toMatchObject({ branchNamesRefused: ['docs', 'shop'], errors: [] });
    expect(refused.computes).toHaveLength(2);
  });

  it('has time for a whole minute that another client of the account has used up', async () => {
    const deadlinesMs: number[] = [];
    const noting = <T>(call: (project: T, options?: { deadlineMs?: number }) => unknown) =>
      ((project: T, options?: { deadlineMs?: number }) => {
        deadlinesMs.push(options?.deadlineMs ?? 0);
        return call(project, options);
      }) as never;
    const { listComputes, listBranches } = api;
    const noted = { ...api, listComputes: noting(listComputes), listBranches: noting(listBranches) };
    expect((await readFleet({ api: noted, readBranches: true })).computes).toHaveLength(2);
    expect(deadlinesMs).toHaveLength(4);
    expect(Math.min(...deadlinesMs)).toBeGreaterThan(60_000);
  });

  it('reads the computes of one project alone, by its id or name', async () => {
    const before = (await platform.requests()).length;
    const survey = await readFleet({ api, readBranches: true, project: 'shop' });
    expect(survey.computes.map(({ computeId }) => computeId)).toEqual(['ep-shop']);
    const routes = (await platform.requests()).slice(before).map(({ route }) => route);
    expect(routes.filter((route) => route !== '/projects')).toEqual([COMPUTES, BRANCHES]);
    expect((await readFleet({ api, readBranches: true, project: 'none' })).projects).toEqual([]);
  });

  it('leaves out a project that is gone, and tells of one that cannot be read', async () => {
    await platform.control('faults', { kind: 'status', status: 404, route: COMPUTES, count: 1 });
    await platform.control('faults', { kind: 'status', status: 403, route: COMPUTES, count: 1, message: 'not yours' });
    const survey = await readFleet({ api, readBranches: true, concurrency: 1 });
    await platform.clearFaults();
    expect(survey).toMatchObject({ projects: [], computes: [] });
    expect(survey.errors).toMatchObject([{ code: 'forbidden', account: 'red', message: 'not yours' }]);
  });

  it('reads a fleet file in the same way', async () => {
    const compute = { type: 'read_write', min_cu: 1, max_cu: 1, suspend_timeout_seconds: 300, state: 'idle' };
    const computes = [
      { ...compute, id: 'ep-1', branch_id: 'br-1', branch: { name: 'main', default: true } },
      { ...compute, id: 'ep-2', branch_id: 'br-2', branch: { name: 'preview/1' } },
      { ...compute, id: 'ep-3', branch_id: 'br-3' },
    ];
    const text = JSON.stringify({ projects: [{ id: 'p', name: 'p', region_id: 'r', pg_version: 17, computes }] });
    const snapshot = createSnapshotApi({ text, name: 'fleet.json', nowMs: 0 });
    if (!snapshot.ok) throw new Error(snapshot.problem);
    const survey = await readFleet({ api: snapshot.value.api, readBranches: true });
    expect(survey.computes).toMatchObject([
      { branchName: 'main', branchRoles: ['default'] },
      { branchName: 'preview/1', branchRoles: ['child'] },
      { computeId: 'ep-3' },
    ]);
    expect(survey.computes[2]).not.toHaveProperty('branchRoles');
  });
});
