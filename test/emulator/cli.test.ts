import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';

const ENTRY = join(import.meta.dirname, '../../src/cli/main.ts');
const children: ChildProcess[] = [];
let folder = '';

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'ebb-emulator-'));
});
afterEach(() => {
  for (const child of children.splice(0)) if (child.exitCode === null) child.kill('SIGKILL');
});
afterAll(() => rm(folder, { recursive: true, force: true }));

function spawnEmulator(...flags: string[]): ChildProcess {
  const child = spawn(process.execPath, ['--import', 'tsx', ENTRY, 'emulator', ...flags], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  children.push(child);
  return child;
}

async function firstLine(child: ChildProcess): Promise<{ url: string; api_key: string }> {
  if (child.stdout === null) throw new Error('no stdout');
  for await (const line of createInterface(child.stdout)) return JSON.parse(line);
  throw new Error('the emulator ended without a line');
}

/** Runs a command that is expected to fail, to its end. */
async function failure(...flags: string[]): Promise<{ code: number; stderr: string }> {
  const child = spawnEmulator(...flags);
  let stderr = '';
  child.stderr?.on('data', (chunk) => {
    stderr += chunk;
  });
  const [code] = await once(child, 'close');
  return { code, stderr };
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
  const child = spawnEmulator('--fleet', file, '--api-key', 'k', '--listen', '127.0.0.1:0', '--operation-time', '0');
  const line = await firstLine(child);
  expect(line).toEqual({ url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/api\/v2$/), api_key: 'k' });
  const response = await fetch(`${line.url}/projects/shop/endpoints`, { headers: { authorization: 'Bearer k' } });
  expect(await response.json()).toMatchObject({ endpoints: [{ id: 'ep-web', suspend_timeout_seconds: 0 }] });

  const busy = await failure('--listen', new URL(line.url).host);
  expect(busy).toEqual({ code: 1, stderr: expect.stringMatching(/^ebb: .* is in use: [^\n]+\n$/) });

  const closed = once(child, 'close');
  child.kill('SIGTERM');
  expect(await closed).toEqual([0, null]);
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
