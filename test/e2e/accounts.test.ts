import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { request } from 'undici';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { FleetProject } from '../../src/emulator/fleet.ts';
import type { Readiness } from '../../src/ports/documents.ts';
import { startTestDaemon, type TestDaemon } from '../support/daemon.ts';
import { makeFolder, type Platform, startTestPlatform } from '../support/platform.ts';

/** Changes nothing: every compute has this size. */
const POLICY = `version: 1
policies:
  - name: as-is
    kind: schedule
    select: { projects: ["*"] }
    windows: [{ at: always, size: 0.25 }]
    otherwise: leave
`;

const SETTINGS = `accounts:
  - { name: red, api_key_file: red.key, organization: org-red }
  - { name: blue, api_key_env: EBB_API_KEY_BLUE, organization: org-blue }
`;

/** Two organizations with a project each, and a folder whose settings have an account for each. */
async function start(): Promise<{ platform: Platform; folder: string }> {
  const folder = await makeFolder({ 'policy.yaml': POLICY, 'ebb.yaml': SETTINGS });
  onTestFinished(() => folder.remove());
  const platform = await startTestPlatform(
    {},
    { fleet: { projects: [project('red'), project('blue'), project('old', 'blue')] } },
  );
  onTestFinished(() => platform.close());
  await makeKey(platform, 'red', 'napi_red_1');
  await makeKey(platform, 'blue', 'napi_blue_1');
  return { platform, folder: folder.path };
}

function project(name: string, account = name): FleetProject {
  const compute = { type: 'read_write', minCu: 0.25, maxCu: 0.25, suspendTimeoutSeconds: 300, connections: 0 } as const;
  return {
    ...{ id: `${name}-shop`, name: `${name}-shop`, account, regionId: 'aws-eu-central-1', pgVersion: 17 },
    computes: [{ ...compute, id: `ep-${name}`, branchId: `br-${name}`, state: 'idle' }],
  };
}

const makeKey = (platform: Platform, account: string, key: string) =>
  platform.control('keys', { kind: 'organization', org: `org-${account}`, key, name: key });

async function revokeKey({ origin }: Platform, name: string): Promise<void> {
  const { body } = await request(`${origin}/_emulator/keys`);
  const { keys } = (await body.json()) as { keys: { id: number; name: string }[] };
  const id = keys.find((key) => key.name === name)?.id;
  const answer = await request(`${origin}/_emulator/keys/${id}`, { method: 'DELETE' });
  expect(answer.statusCode).toBe(200);
  await answer.body.dump();
}

async function deleteProject({ url }: Platform, id: string, key: string): Promise<void> {
  const answer = await request(`${url}/projects/${id}`, {
    method: 'DELETE',
    headers: { authorization: `Bearer ${key}` },
  });
  expect(answer.statusCode).toBe(200);
  await answer.body.dump();
}

async function startOn(platform: Platform, folder: string): Promise<TestDaemon> {
  const env = { EBB_API_KEY: '', EBB_API_KEY_BLUE: 'napi_blue_1' };
  const daemon = await startTestDaemon({ platform, folder, env });
  onTestFinished(() => daemon.stop());
  return daemon;
}

async function accountChecks({ url }: TestDaemon) {
  const { statusCode, body } = await request(`${url}/readyz`);
  const { checks } = (await body.json()) as Readiness;
  const ofAccounts = checks.filter(({ name }) => name.startsWith('account '));
  return { statusCode, red: ofAccounts[0], blue: ofAccounts[1] };
}

async function metrics({ url }: TestDaemon): Promise<string> {
  return (await request(`${url}/metrics`)).body.text();
}

/** So many requests were answered with this status; the lists of projects among them are one for each inventory. */
async function answered(platform: Platform, status: number): Promise<number> {
  return (await platform.requests()).filter((one) => one.status === status).length;
}

describe('a daemon with two accounts', () => {
  it('stops the calls of the one whose key is revoked, and recovers with a new key file, without a restart', async () => {
    const { platform, folder } = await start();
    await writeFile(join(folder, 'red.key'), 'napi_red_1\n', { mode: 0o600 });
    const daemon = await startOn(platform, folder);
    expect(await accountChecks(daemon)).toMatchObject({ statusCode: 200, red: { ok: true }, blue: { ok: true } });

    await revokeKey(platform, 'napi_red_1');
    await expect
      .poll(() => accountChecks(daemon))
      .toMatchObject({
        statusCode: 503,
        red: { ok: false, message: expect.stringContaining('refuses the API key of account red; replace it') },
        blue: { ok: true },
      });
    const [refusals, successes] = [await answered(platform, 401), await answered(platform, 200)];
    await expect.poll(() => answered(platform, 200)).toBeGreaterThan(successes + 8);
    // One more at most: the first probe.
    expect((await answered(platform, 401)) - refusals).toBeLessThanOrEqual(1);
    const during = await metrics(daemon);
    expect(during).toContain('ebb_api_key_valid{account="red"} 0');
    expect(during).toContain('ebb_api_key_valid{account="blue"} 1');
    expect(during).toMatch(/ebb_compute_info\{.*compute="ep-red".*account="red".*\} 1/);
    expect(during).not.toMatch(/^ebb_outages_total\{.*\} [1-9]/m);

    await makeKey(platform, 'red', 'napi_red_2');
    await writeFile(join(folder, 'red.new'), 'napi_red_2\n', { mode: 0o600 });
    await rename(join(folder, 'red.new'), join(folder, 'red.key'));
    await expect.poll(() => accountChecks(daemon)).toMatchObject({ statusCode: 200, red: { ok: true } });
    expect(await metrics(daemon)).toContain('ebb_api_key_valid{account="red"} 1');
    expect(await platform.writes()).toEqual([]);
  });

  it('notices which projects of the one are gone, while the other cannot be asked for its own', async () => {
    const { platform, folder } = await start();
    await writeFile(join(folder, 'red.key'), 'napi_red_1');
    const daemon = await startOn(platform, folder);
    await expect.poll(() => metrics(daemon)).toContain('compute="ep-old"');
    await revokeKey(platform, 'napi_red_1');
    await expect.poll(async () => (await accountChecks(daemon)).red).toMatchObject({ ok: false });
    await deleteProject(platform, 'old-shop', 'napi_blue_1');
    await expect.poll(() => metrics(daemon)).not.toContain('compute="ep-old"');
    expect(await metrics(daemon)).toContain('compute="ep-red"');
  });

  it('starts while one of them answers, and keeps what it knows of the other', async () => {
    const { platform, folder } = await start();
    const daemon = await startOn(platform, folder);
    expect(await accountChecks(daemon)).toMatchObject({
      statusCode: 503,
      red: { ok: false, message: expect.stringMatching(/account red has no API key to send: .*red\.key .*ENOENT/) },
      blue: { ok: true },
    });
    await writeFile(join(folder, 'red.key'), 'napi_red_1\n');
    await expect.poll(() => accountChecks(daemon)).toMatchObject({ statusCode: 200 });
    await expect.poll(() => metrics(daemon)).toContain('compute="ep-red"');
  });

  it('does not start when none of them answers, and says which key to look at', async () => {
    const { platform, folder } = await start();
    await writeFile(join(folder, 'red.key'), 'napi_pl4nted');
    await revokeKey(platform, 'napi_blue_1');
    const problem = await startOn(platform, folder).then(() => 'it started', String);
    expect(problem).toMatch(/refuses the API key of account red \(401: .*\); check .*red\.key$/);
    expect(problem).not.toContain('pl4nted');
  });
});
