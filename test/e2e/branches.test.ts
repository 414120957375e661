import { request } from 'undici';
import { expect, it, onTestFinished } from 'vitest';
import { startTestDaemon } from '../support/daemon.ts';
import { makeFolder, startTestPlatform } from '../support/platform.ts';

const POLICY = `version: 1
policies:
  - name: previews
    kind: schedule
    select: { branches: ["preview/*"] }
    windows: [{ at: always, size: 0.5 }]
    otherwise: leave
`;

it('selects computes by the names of their branches', async () => {
  const platform = await startTestPlatform({
    production: { branch: { name: 'production', default: true } },
    preview: { branch: { name: 'preview/login' } },
  });
  onTestFinished(() => platform.close());
  const folder = await makeFolder({ 'policy.yaml': POLICY });
  onTestFinished(() => folder.remove());
  const daemon = await startTestDaemon({ platform, folder: folder.path });
  onTestFinished(() => daemon.stop());
  const changed = async () => (await platform.writes()).map(({ path }) => path.split('/').at(-1));
  await expect.poll(changed, { timeout: 50_000 }).toEqual(['ep-preview']);
  const requests = await platform.requests();
  // That project never changes, so its branches are not read again.
  expect(requests.filter(({ path }) => path.includes('/production/branches'))).toHaveLength(1);
});

it('starts though no branches can be listed at the moment, and goes on once they can', async () => {
  const platform = await startTestPlatform({ preview: { branch: { name: 'preview/login' } } });
  onTestFinished(() => platform.close());
  await platform.control('faults', { kind: 'status', status: 500, route: '/projects/{project_id}/branches' });
  const folder = await makeFolder({ 'policy.yaml': POLICY });
  onTestFinished(() => folder.remove());
  const daemon = await startTestDaemon({ platform, folder: folder.path });
  onTestFinished(() => daemon.stop());
  const named = () => daemon.logs.filter(({ event }) => event === 'ebb.project_refused').length;
  // A reading is tried for 30 s, and the first failed one may begin an outage.
  await expect.poll(named, { timeout: 90_000 }).toBe(1);
  expect(await platform.writes()).toEqual([]);
  await platform.clearFaults();
  const changed = async () => (await platform.writes()).map(({ path }) => path.split('/').at(-1));
  await expect.poll(changed, { timeout: 50_000 }).toEqual(['ep-preview']);
});

/** The compute that may be changed is changed last: what must not be changed would have been by then. */
const guardedBefore = (interval: string) => `version: 1
policies:
  - name: small
    kind: schedule
    select: { branches: ["*", "!main"], min_age: 0s }
    windows: [{ at: always, size: 0.25 }]
    otherwise: leave
  - name: no-touch
    kind: freeze
    select: { projects: ["production"], branches: ["main"], min_age: 0s }
    at: always
  - name: by-id
    kind: schedule
    select: { computes: ["ep-other"], min_age: 0s }
    windows: [{ at: "${interval}", size: 0.5 }]
    otherwise: leave
    priority: 1
`;

it('writes nothing where a branch may be excluded, or frozen, while the key may not list branches', async () => {
  const platform = await startTestPlatform({
    production: { minCu: 8, maxCu: 8, branch: { name: 'main', default: true } },
    other: {},
  });
  onTestFinished(() => platform.close());
  await platform.control('faults', { kind: 'status', status: 403, route: '/projects/{project_id}/branches' });
  const [start, end] = [15_000, 3_600_000].map((ms) => `${new Date(Date.now() + ms).toISOString().slice(0, 19)}Z`);
  const folder = await makeFolder({ 'policy.yaml': guardedBefore(`${start}/${end}`) });
  onTestFinished(() => folder.remove());
  const daemon = await startTestDaemon({ platform, folder: folder.path });
  onTestFinished(() => daemon.stop());
  const refusals = () => daemon.logs.filter(({ event }) => event === 'ebb.branch_names_refused');
  await expect.poll(() => refusals().length, { timeout: 50_000 }).toBe(2);
  const changed = async () => (await platform.writes()).map(({ path }) => path.split('/').at(-1));
  await expect.poll(changed, { timeout: 50_000 }).toEqual(['ep-other']);
});

const NEW_PREVIEWS = `version: 1
policies:
  - name: previews
    kind: schedule
    select: { branches: ["preview/*"], min_age: 0s }
    disruption: { newly_discovered: act, lower: { when: any } }
    windows: [{ at: always, size: 0.25, suspend_after: 5m }]
    otherwise: leave
`;

it('sizes a branch that CI has just made within a minute, and drops no client', async () => {
  const platform = await startTestPlatform({
    app: { minCu: 4, maxCu: 8, branch: { name: 'main', default: true }, state: 'active', connections: 5 },
  });
  onTestFinished(() => platform.close());
  const folder = await makeFolder({ 'policy.yaml': NEW_PREVIEWS });
  onTestFinished(() => folder.remove());
  const daemon = await startTestDaemon({ platform, folder: folder.path });
  onTestFinished(() => daemon.stop());
  await expect.poll(async () => (await platform.requests()).length, { timeout: 50_000 }).toBeGreaterThan(3);

  const answer = await request(`${platform.url}/projects/app/branches`, {
    method: 'POST',
    headers: { authorization: `Bearer ${platform.apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      branch: { name: 'preview/pr-7' },
      endpoints: [{ type: 'read_write', autoscaling_limit_min_cu: 4, autoscaling_limit_max_cu: 8 }],
    }),
  });
  expect(answer.statusCode).toBe(201);
  const { endpoints } = (await answer.body.json()) as { endpoints: { id: string }[] };
  const id = endpoints[0]?.id as string;
  const state = async (computeId: string) => {
    const read = await request(`${platform.origin}/_emulator/state`);
    const { computes } = (await read.body.json()) as { computes: Record<string, unknown>[] };
    return computes.find((compute) => compute.compute_id === computeId);
  };
  await expect.poll(() => state(id), { timeout: 60_000 }).toMatchObject({ min_cu: 0.25, max_cu: 0.25 });
  // The jobs of CI now work on it, and stay connected while the daemon reads the project again.
  await platform.control(`computes/${id}/connect`, { connections: 2 });
  const reads = async () => (await platform.requests()).filter(({ path }) => path.endsWith('/projects/app/endpoints'));
  const before = (await reads()).length;
  await expect.poll(async () => (await reads()).length, { timeout: 60_000 }).toBeGreaterThan(before);
  await expect.poll(() => state(id), { timeout: 60_000 }).toMatchObject({ connections: 2, connections_dropped: 0 });
  expect(await state('ep-app')).toMatchObject({ connections: 5, connections_dropped: 0, restarts: 0, max_cu: 8 });
  expect(
    (await platform.writes()).filter(({ method }) => method === 'PATCH').map(({ path }) => path.split('/').at(-1)),
  ).toEqual([id]);
});
