/** `ebb verify` as a process: what it refuses, and what comes back when it is killed. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { startEbb } from '../support/ebb-process.ts';
import { makeFolder, type Platform, startTestPlatform } from '../support/platform.ts';

const ORIGINAL = { autoscaling_limit_min_cu: 0.25, autoscaling_limit_max_cu: 0.25, suspend_timeout_seconds: 300 };
let platform: Platform;
let folder: Awaited<ReturnType<typeof makeFolder>>;
let projectId: string;

const env = () => ({
  EBB_API_URL: platform.url,
  EBB_API_KEY: platform.apiKey,
  DATABASE_URL: 'postgres://u:secret-1@h/d',
});
const verify = (...words: string[]) => startEbb(['verify', ...words], { cwd: folder.path, env: env() });

async function api(method: string, path: string, body?: object): Promise<Record<string, unknown>> {
  const headers = { authorization: `Bearer ${platform.apiKey}`, 'content-type': 'application/json' };
  const answer = await fetch(`${platform.url}${path}`, {
    method,
    headers,
    ...(body && { body: JSON.stringify(body) }),
  });
  return (await answer.json()) as Record<string, unknown>;
}

const settings = async () => (await api('GET', `/projects/${projectId}/endpoints`)).endpoints;
const isPatched = async () => (await platform.writes()).some(({ method }) => method === 'PATCH');

beforeEach(async () => {
  platform = await startTestPlatform({ shop: {} }, { operationTimeMs: 10 });
  folder = await makeFolder();
  const made = (await api('POST', '/projects', { project: { name: 'ebb-verify-1' } })) as { project: { id: string } };
  projectId = made.project.id;
  const [compute] = (await settings()) as { id: string }[];
  await expect.poll(async () => (await settings()) as object[]).toMatchObject([{ current_state: 'active' }]);
  await api('PATCH', `/projects/${projectId}/endpoints/${compute?.id}`, { endpoint: ORIGINAL });
  await fetch(`${platform.origin}/_emulator/requests`, { method: 'DELETE' });
});
afterEach(async () => {
  await platform?.close();
  await folder?.remove();
});

it('killed after a write: --restore puts back what was there, and once', async () => {
  const killed = verify('--project', projectId);
  await expect.poll(isPatched, { timeout: 200_000 }).toBe(true);
  await killed.kill();
  expect(await settings()).not.toMatchObject([ORIGINAL]);
  const again = verify('--project', projectId);
  expect([await again.ended, again.stderr()]).toEqual([1, expect.stringContaining('with --restore')]);
  const restored = verify('--project', projectId, '--restore');
  expect([await restored.ended, restored.stderr()]).toEqual([0, 'the compute has its earlier settings again\n']);
  expect(await settings()).toMatchObject([ORIGINAL]);
  const twice = verify('--project', projectId, '--restore');
  expect([await twice.ended, twice.stderr()]).toEqual([0, 'there is nothing to put back\n']);
});

it('stopped by Ctrl-C after a write: puts back what was there by itself', async () => {
  const stopped = verify('--project', projectId);
  await expect.poll(isPatched, { timeout: 200_000 }).toBe(true);
  expect(await settings()).not.toMatchObject([ORIGINAL]);
  stopped.child.kill('SIGINT');
  expect(await stopped.ended).toBe(1);
  expect(stopped.stderr()).toMatch(
    /\nstopping: putting back what was there\nebb: stopped; the settings of the compute are as they were\n$/,
  );
  expect(stopped.lines).toEqual([]);
  expect(await settings()).toMatchObject([ORIGINAL]);
  const restored = verify('--project', projectId, '--restore');
  expect([await restored.ended, restored.stderr()]).toEqual([0, 'there is nothing to put back\n']);
});

it('refuses another project, and a connection string in its arguments, without a write', async () => {
  const other = verify('--project', 'shop');
  expect([await other.ended, other.stderr()]).toEqual([1, expect.stringContaining('does not begin with ebb-verify-')]);
  const secret = verify('--project', projectId, '--database-url', 'postgres://u:secret-2@h/d');
  expect([await secret.ended, secret.stderr()]).toEqual([
    1,
    expect.stringContaining('never the connection string itself'),
  ]);
  expect(secret.stderr()).not.toContain('secret-2');
  const elsewhere = verify('--project', projectId, '--database-url', 'env:DATABASE_URL');
  expect([await elsewhere.ended, elsewhere.stderr()]).toEqual([1, expect.stringContaining('leads to another server')]);
  expect(elsewhere.stderr()).not.toContain('secret-1');
  expect(await platform.writes()).toEqual([]);
});
