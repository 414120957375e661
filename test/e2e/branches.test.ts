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
  expect(requests.filter(({ path }) => path.endsWith('/branches')).length).toBeLessThanOrEqual(2);
}, 90_000);
