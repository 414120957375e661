import { afterEach, expect, it } from 'vitest';
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

const undo: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

it('selects computes by the names of their branches', async () => {
  const platform = await startTestPlatform({
    production: { branch: { name: 'production', default: true } },
    preview: { branch: { name: 'preview/login' } },
  });
  undo.push(() => platform.close());
  const folder = await makeFolder({ 'policy.yaml': POLICY });
  undo.push(() => folder.remove());
  const daemon = await startTestDaemon({ platform, folder: folder.path });
  undo.push(() => daemon.stop());
  const changed = async () => (await platform.writes()).map(({ path }) => path.split('/').at(-1));
  await expect.poll(changed, { timeout: 50_000 }).toEqual(['ep-preview']);
  const requests = await platform.requests();
  // That project never changes, so its branches are not read again.
  expect(requests.filter(({ path }) => path.includes('/production/branches'))).toHaveLength(1);
}, 90_000);

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
  undo.push(() => platform.close());
  await platform.control('faults', { kind: 'status', status: 403, route: '/projects/{project_id}/branches' });
  const [start, end] = [15_000, 3_600_000].map((ms) => `${new Date(Date.now() + ms).toISOString().slice(0, 19)}Z`);
  const folder = await makeFolder({ 'policy.yaml': guardedBefore(`${start}/${end}`) });
  undo.push(() => folder.remove());
  const daemon = await startTestDaemon({ platform, folder: folder.path });
  undo.push(() => daemon.stop());
  const refusals = () => daemon.logs.filter(({ event }) => event === 'ebb.branch_names_refused');
  await expect.poll(() => refusals().length, { timeout: 50_000 }).toBe(2);
  const changed = async () => (await platform.writes()).map(({ path }) => path.split('/').at(-1));
  await expect.poll(changed, { timeout: 50_000 }).toEqual(['ep-other']);
}, 120_000);
