import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openStore } from '../../src/compose/store.ts';
import { generateFleet } from '../../src/emulator/generate-fleet.ts';
import { readSettings } from '../../src/settings/settings.ts';
import { startEbb } from '../support/ebb-process.ts';
import { makeFolder, type Platform, prepareQueue, startTestPlatform } from '../support/platform.ts';

const DAY_MS = 86_400_000;
const createdAtMs = Date.now() - 60 * DAY_MS;

let platform: Platform;
let folder: { path: string; remove(): Promise<void> };

beforeAll(async () => {
  const always = { createdAtMs, state: 'active' as const, load: [{ class: 'replication' as const, cu: 1 }] };
  const hourly = { createdAtMs, load: [{ class: 'cron_ping' as const, everySeconds: 3600, cu: 0 }] };
  platform = await startTestPlatform(
    {
      shop: { ...always, minCu: 1, maxCu: 1 },
      docs: { ...hourly, branch: { name: 'live', protected: true } },
      pair: { ...hourly, minCu: 0.5, maxCu: 2 },
    },
    { historyMs: 35 * DAY_MS },
  );
  folder = await makeFolder();
});
afterAll(async () => {
  await platform.close();
  await folder.remove();
});

async function report(args: readonly string[] = [], key = platform.apiKey) {
  const child = startEbb(['report', '--api-url', platform.url, ...args], {
    cwd: folder.path,
    env: { NEON_API_KEY: key },
  });
  const status = await child.ended;
  return { status, stdout: child.lines.join('\n'), stderr: child.stderr() };
}

const json = async (...args: [] | [readonly string[], string]) => {
  const { status, stdout } = await report(['--json', ...(args[0] ?? [])], args[1]);
  return { status, ...JSON.parse(stdout) };
};

describe('ebb report', () => {
  it('needs only a key, and says in dollars what a paid plan has used', async () => {
    const { status, projects, computes, missing } = await json();
    expect({ status, missing, count: computes.length }).toEqual({ status: 0, missing: [], count: 3 });
    const shop = projects.find(({ name }: { name: string }) => name === 'shop');
    expect(shop).toMatchObject({ plan: 'scale', included_cu_hours: null, runs_out: null });
    expect(shop.used_usd).toBeCloseTo(0.222 * shop.used_cu_hours, 1);
    // Always awake at one size: an hour of it is a CU-hour.
    const hours = (Date.parse(shop.period.to) - Date.parse(shop.period.from)) / 3_600_000;
    expect(Math.abs(shop.projected_cu_hours.mid - hours)).toBeLessThan(0.03 * hours);
  });

  it('says when the free plan runs out, and ends with 3', async () => {
    await platform.control('plan', { plan: 'free' });
    const { status, projects } = await json();
    const outs = projects.map(({ name, runs_out: out }: { name: string; runs_out: { mid: string } | null }) => [
      name,
      out,
    ]);
    expect({ status, first: outs[0] }).toEqual({
      status: 3,
      first: ['shop', expect.objectContaining({ mid: expect.any(String) })],
    });
    expect(outs.slice(1).map(([, out]: [string, unknown]) => out)).toEqual([null, null]);
    const text = await report();
    expect(text).toMatchObject({ status: 3, stderr: '' });
    expect(text.stdout).toContain('Free: 1 of 3 projects will probably run out of 100 CU-hours');
    expect(text.stdout.match(/[^.]*\$[^.]*/g)).toEqual([
      expect.stringContaining('On Launch, the compute of all 3 projects of their organization would cost about $'),
    ]);
  });

  it('has nothing of $0.00 in awake and recommend either: on Free hours are scarce', async () => {
    for (const command of ['awake', 'recommend']) {
      const args = [command, '--live', '--api-url', platform.url];
      const child = startEbb(args, { cwd: folder.path, env: { NEON_API_KEY: platform.apiKey } });
      expect(await child.ended).toBe(0);
      const stdout = child.lines.join('\n');
      expect(stdout).toMatch(/\d CU-hours a month/);
      expect(stdout).not.toContain('$');
    }
  });

  it('writes names as code in markdown, so that they can be nothing else', async () => {
    const { stdout } = await report(['--format', 'markdown']);
    expect(stdout).toMatch(/^### ebb report\n/);
    expect(stdout).toContain('| `shop` | free |');
  });

  it('says in one line what it can’t do', async () => {
    expect(await report([], 'napi_wrong')).toMatchObject({
      status: 1,
      stdout: '',
      stderr: expect.stringMatching(/^ebb: [^\n]*\n$/),
    });
  });

  it.each([
    ['/operations', 'operations', 'its operations could not be read'],
    ['/endpoints', 'computes', undefined],
    ['', 'usage', expect.any(String)],
  ])('claims nothing of a project of which GET /projects/{project_id}%s is refused', async (route, part, said) => {
    const fault = { kind: 'status', status: 403, message: 'not yours', count: 1 };
    const refuse = () => platform.control('faults', { ...fault, route: `GET /projects/{project_id}${route}` });
    await refuse();
    const { status, projects, computes, missing, unread } = await json();
    const [{ name, project_id: id }] = unread;
    expect({
      unread,
      missing,
      said: computes.find((one: { project_id: string }) => one.project_id === id)?.says,
    }).toEqual({
      unread: [{ project_id: id, name, parts: [part] }],
      missing: [
        expect.stringMatching(`^${name}: .* answers 403: not yours; it is not available with the key of account`),
      ],
      said,
    });
    // What is known of the others still counts.
    expect(status).toBe(projects.some((one: { runs_out: object | null }) => one.runs_out) ? 3 : undefined);
    await refuse();
    const { stdout, stderr } = await report(['--format', 'markdown']);
    expect(stderr).toMatch(/^note: left out: \w+: [^\n]*\n$/);
    expect(stdout).toMatch(/^\| `\w+` .* could not be read \|/m);
    expect(stdout).toMatch(/\nLeft out:\n\n- \w+: .*not yours/);
    expect(stdout).not.toContain('too few days');
  });

  it('shows the projects of an owner, and what only they use; of nobody it says who owns something', async () => {
    const config = join(folder.path, 'owned.yaml');
    await writeFile(config, 'owners: { shop: team-web }\n');
    const own = await json(['--config', config, '--owner', 'team-web'], platform.apiKey);
    const [shop, ...others] = own.projects;
    expect({ name: shop.name, others, computes: own.computes.length }).toEqual({
      name: 'shop',
      others: [],
      computes: 1,
    });
    expect(own.totals).toMatchObject({ projects: 1, used_cu_hours: shop.used_cu_hours });
    expect(own).toMatchObject({ status: 3, on_launch_usd: null });
    const rest = await json(['--config', config, '--owner', 'unowned'], platform.apiKey);
    expect(rest.projects.map(({ name }: { name: string }) => name).toSorted()).toEqual(['docs', 'pair']);
    // That a project of somebody else runs out is no news for them.
    expect(rest.status).toBe(0);
    expect(await report(['--config', config, '--owner', 'team-wbe'])).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/^ebb: --owner: nothing belongs to team-wbe; owners are .*team-web.*\n$/),
    });
  });

  it.each([
    ['a name of a branch', ['--select', 'branches=live']],
    ['a role of a branch', ['--select', 'branch_roles=protected']],
    ['an owner by a name of a branch', ['--owner', 'team-live']],
  ])('selects by %s', async (_what, flags) => {
    const config = join(folder.path, 'branches.yaml');
    await writeFile(config, 'owners: { "*/live": team-live }\n');
    const { stdout, stderr } = await report(['--json', '--config', config, ...flags]);
    expect(stderr).toBe('');
    expect(JSON.parse(stdout).projects.map(({ name }: { name: string }) => name)).toEqual(['docs']);
  });

  it('notes of which project the key may not list the branches', async () => {
    const route = 'GET /projects/{project_id}/branches';
    await platform.control('faults', { kind: 'status', status: 403, message: 'not yours', count: 1, route });
    const { stdout, stderr } = await report(['--json']);
    expect(stderr).toMatch(/^note: the key may not list the branches of \w+: [^\n]*\n$/);
    expect(JSON.parse(stdout)).toMatchObject({ missing: [], unread: [] });
  });

  it('refuses --json with another format in one line', async () => {
    for (const command of ['report', 'recommend']) {
      const child = startEbb([command, '--json', '--format', 'markdown'], { cwd: folder.path });
      expect({ status: await child.ended, stdout: child.lines, stderr: child.stderr() }).toEqual({
        ...{ status: 1, stdout: [] },
        stderr: 'ebb: --json contradicts --format markdown: leave one of them out\n',
      });
    }
    expect(await report(['--json', '--format', 'json'])).toMatchObject({ stdout: expect.stringMatching(/^\{/) });
  });

  it('says that it waits for an API that is not there, and not for long', async () => {
    const nobody = 'http://127.0.0.1:9/api/v2';
    const { status, stdout, stderr } = await report(['--api-url', nobody]);
    expect({ status, stdout, lines: stderr.trim().split('\n') }).toEqual({
      ...{ status: 1, stdout: '' },
      lines: [
        expect.stringMatching(
          /^cannot reach \S+: connect ECONNREFUSED \S+; trying again until ..:..:.. UTC at the latest \(Ctrl-C stops\)$/,
        ),
        expect.stringMatching(/^ebb: cannot reach .*check EBB_API_URL/),
      ],
    });
  });
});

it('shows first findings of a large fleet while its hourly usage is read', async () => {
  const { projects } = generateFleet({ projects: 51, computesPerProject: 1, seed: 1, loads: true });
  const large = await startTestPlatform({}, { fleet: { projects, historyMs: 8 * DAY_MS }, availabilityCheckMs: 0 });
  const quick = await makeFolder({ 'ebb.yaml': 'api_requests_per_minute: 100000\n' });
  try {
    const env = { NEON_API_KEY: large.apiKey };
    const child = startEbb(['report', '--api-url', large.url], { cwd: quick.path, env });
    expect(await child.ended).toBe(0);
    expect(child.stderr()).toContain('only the newest operations are read: ebb recommend reads them all');
    expect((await large.requests()).filter(({ route }) => route === '/projects/{project_id}/branches')).toEqual([]);
    expect(child.stderr()).toMatch(/first findings; the usage of each hour is being read:\n {2}\S+ \/ \S+: \w+, /);
  } finally {
    await Promise.all([large.close(), quick.remove()]);
  }
});

it('proposes no setting that a hold decides, as ebb recommend does not', async () => {
  const load = [{ class: 'cron_ping' as const, everySeconds: 3600, cu: 0 }];
  const never = { createdAtMs, state: 'active' as const, suspendTimeoutSeconds: -1, load };
  const one = await startTestPlatform({ never }, { historyMs: 10 * DAY_MS });
  const here = await makeFolder();
  try {
    const queue = await prepareQueue(here.path);
    const env = {
      ...{ EBB_API_URL: one.url, EBB_API_KEY: one.apiKey },
      ...{ EBB_QUEUE_URL: queue.url, EBB_GROUP: queue.group },
    };
    const proposed = async () => {
      const child = startEbb(['report', '--json'], { cwd: here.path, env });
      await child.ended;
      return JSON.parse(child.lines.join('\n')).computes.map(({ set }: { set: unknown }) => set);
    };
    expect(await proposed()).toEqual([{ suspend_timeout_seconds: expect.any(Number) }]);
    const read = readSettings({ env, cwd: here.path });
    const opened = read.ok ? await openStore(read.settings) : read;
    if (!opened.ok) throw new Error(JSON.stringify(opened));
    await opened.value.store.putHold({
      ...{ id: 'h-1', projectId: 'never', computeId: 'ep-never', owner: 'anna', reason: 'import' },
      ...{ suspendTimeoutSeconds: -1, createdAtMs: Date.now() - 1000, expiresAtMs: Date.now() + 3_600_000 },
    });
    await opened.value.close();
    expect(await proposed()).toEqual([null]);
  } finally {
    await one.close();
    await here.remove();
  }
});
