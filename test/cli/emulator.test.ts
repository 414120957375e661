import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { type EbbProcess, startEbb } from '../support/ebb-process.ts';

const started: EbbProcess[] = [];
let folder = '';

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'ebb-emulator-'));
});
afterEach(() => Promise.all(started.splice(0).map((one) => one.kill())));
afterAll(() => rm(folder, { recursive: true, force: true }));

function start(...flags: string[]): EbbProcess {
  const emulator = startEbb(['emulator', ...flags]);
  started.push(emulator);
  return emulator;
}

/** Runs a command that is expected to fail, to its end. */
async function failure(...flags: string[]): Promise<{ code: unknown; stderr: string }> {
  const emulator = start(...flags);
  return { code: await emulator.ended, stderr: emulator.stderr() };
}

it('serves a fleet file, prints one line of JSON, and stops cleanly on SIGTERM', async () => {
  const file = join(folder, 'fleet.yaml');
  await writeFile(
    file,
    `projects:
  - id: shop
    name: shop-prod
    region_id: aws-eu-central-1
    pg_version: 17
    computes:
      - { id: ep-web, branch_id: br-main, branch: { name: main, default: true, protected: true }, type: read_write,
          min_cu: 0.25, max_cu: 2, suspend_timeout_seconds: 0, state: idle }
`,
  );
  const emulator = start('--fleet', file, '--api-key', 'k', '--listen', '127.0.0.1:0', '--operation-time', '0');
  await expect.poll(() => emulator.lines).toHaveLength(1);
  const line = JSON.parse(emulator.lines[0] ?? '');
  expect(line).toEqual({ url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/api\/v2$/), api_key: 'k' });
  const response = await fetch(`${line.url}/projects/shop/endpoints`, { headers: { authorization: 'Bearer k' } });
  expect(await response.json()).toMatchObject({ endpoints: [{ id: 'ep-web', suspend_timeout_seconds: 0 }] });

  const busy = await failure('--listen', new URL(line.url).host);
  expect(busy).toEqual({ code: 1, stderr: expect.stringMatching(/^ebb: .* is in use: [^\n]+\n$/) });

  emulator.child.kill('SIGTERM');
  expect(await emulator.ended).toBe(0);
});

it('says in one line what is wrong, and exits 1', async () => {
  const broken = join(folder, 'broken.yaml');
  await writeFile(broken, 'projects: [{ id: shop, name: shop, region_id: r, pg_version: 17, computes: [{ id: 7 }] }]');
  const failures = await Promise.all([
    failure('--fleet', broken),
    failure('--fleet', join(folder, 'missing.yaml')),
    failure('--listen', 'nowhere'),
    failure('--rate-limit', 'many'),
  ]);
  expect(failures.map(({ code }) => code)).toEqual([1, 1, 1, 1]);
  for (const { stderr } of failures) expect(stderr).toMatch(/^ebb: [^\n]+\n$/);
  expect(failures[0]?.stderr).toContain('projects.0.computes.0.id');
});
