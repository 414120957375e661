import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { OPERATIONS_HEADER, operationLine } from '../../src/domain/awake/operations-csv.ts';
import { seededRandom } from '../../src/domain/random.ts';
import { cron, DAY, MINUTE, simulate } from '../support/demand.ts';
import { startEbb } from '../support/ebb-process.ts';
import { makeFolder, prepareQueue, startTestPlatform } from '../support/platform.ts';
import { fleetFile } from './fleet-files.ts';

const TO = Date.parse('2026-11-02T00:00:00Z');
const SPAN = { fromMs: TO - 28 * DAY, toMs: TO };
const activities = cron(seededRandom(5), SPAN, 30 * MINUTE);
const hourly = ['shop', 'blog'].map((projectId) =>
  simulate({
    ...SPAN,
    random: seededRandom(1),
    activities,
    timeoutSeconds: 300,
    projectId,
    computeId: `ep-${projectId}`,
  }),
);

const idle = { state: 'idle', suspend_timeout_seconds: 300, created_at: '2026-01-01T00:00:00Z' };
const FLEET = fleetFile(
  {
    'shop/ep-shop': idle,
    'blog/ep-blog': idle,
    'never/ep-never': { suspend_timeout_seconds: -1, started_at: '2026-01-01T00:00:00Z' },
    'old/ep-old': { ...idle, last_active: '2026-08-01T00:00:00Z' },
  },
  { taken_at: '2026-11-02T00:00:00Z' },
);

let folder: { path: string; remove(): Promise<void> };

beforeAll(async () => {
  const rows = hourly.flatMap(({ operations }) => operations).map(operationLine);
  folder = await makeFolder({
    'operations.csv': [
      OPERATIONS_HEADER,
      ...rows,
      'never,ep-never,apply_config,finished,2026-10-05T00:00:00Z,1',
      '',
    ].join('\n'),
    'fleet.json': FLEET,
    'scale.yaml': 'plan: scale\n',
    'launch.yaml': 'plan: launch\n',
    'none.yaml': 'version: 1\npolicies: []\n',
  });
});

afterAll(() => folder.remove());

async function ebb(args: string[]) {
  const child = startEbb(args, { cwd: folder.path });
  const status = await child.ended;
  return { status, stdout: child.lines.join('\n'), stderr: child.stderr() };
}

const FILES = ['--operations', 'operations.csv', '--fleet', 'fleet.json'];
const findings = async (plan: string, ...flags: string[]) => {
  const { status, stdout, stderr } = await ebb(['recommend', '--json', '--config', `${plan}.yaml`, ...FILES, ...flags]);
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  return JSON.parse(stdout).findings as Record<string, unknown>[];
};

describe('ebb recommend', () => {
  it('prints findings with figure, saving, starts and policy', async () => {
    const found = await findings('scale');
    expect(found.map(({ compute_id: id, finding, figure }) => `${id} ${finding} ${figure}`)).toEqual([
      'ep-never never_suspends estimate',
      expect.stringMatching(/^ep-(shop|blog) timeout at_least$/),
      expect.stringMatching(/^ep-(shop|blog) timeout at_least$/),
      'ep-old unused estimate',
    ]);
    const shop = found.find(({ compute_id: id }) => id === 'ep-shop');
    expect(shop).toMatchObject({
      ...{ project_id: 'shop', owner: 'unowned' },
      ...{ now: { suspend_timeout_seconds: 300 }, proposed: { suspend_timeout_seconds: 60 } },
      policy: expect.stringContaining('max: 1m'),
    });
    // Of each half hour four minutes, at 0.25 CU and $0.222, at least nearly.
    const most = (730 * 2 * 4 * 0.25) / 60;
    const { cu_hours_month: hours, usd_month: usd } = (shop?.saves ?? {}) as Record<
      string,
      { low: number; high: number }
    >;
    expect(hours?.low).toBeGreaterThan(0.9 * most);
    expect(hours?.low).toBeLessThanOrEqual(1.01 * most);
    expect(usd?.low).toBeCloseTo((hours?.low ?? 0) * 0.222, 1);
  });

  it('proposes nothing on a Launch plan that would be answered with 412', async () => {
    const found = await findings('launch');
    const timeouts = found.map(({ proposed }) => (proposed as Record<string, number>).suspend_timeout_seconds);
    expect(timeouts.filter((seconds) => seconds !== undefined)).toEqual([300]);
  });

  it('proposes nothing that only Scale allows where nobody says which plan it is, and says so', async () => {
    const { status, stdout, stderr } = await ebb(['recommend', '--json', ...FILES]);
    const found = JSON.parse(stdout).findings as { proposed: Record<string, number> }[];
    const timeouts = found.map(({ proposed }) => proposed.suspend_timeout_seconds);
    expect({ status, timeouts: timeouts.filter((seconds) => seconds !== undefined) }).toEqual({
      ...{ status: 0, timeouts: [300] },
    });
    expect(stderr.trim()).toBe(
      'note: the plan of account default is not known: no price, and no timeout that only Scale allows, is shown; write plan: in ebb.yaml',
    );
  });

  it('leaves out what saves less than --min-usd, and refuses an owner of nothing', async () => {
    const found = await findings('scale', '--min-usd', '10');
    expect(found.map(({ compute_id: id }) => id)).toEqual(['ep-never']);
    const refused = await ebb(['recommend', '--config', 'scale.yaml', ...FILES, '--owner', 'somebody']);
    expect(refused).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('--owner: nothing belongs to somebody; owners are unowned'),
    });
  });

  it('writes few policies that validate, and that change in ebb diff what was proposed', async () => {
    const written = await ebb(['recommend', '--config', 'scale.yaml', ...FILES, '--write', 'out']);
    expect(written).toMatchObject({
      status: 0,
      stderr: expect.stringContaining('written: out/recommended-unowned.yaml'),
    });
    expect(written.stdout).toContain('suspend_after 5m → 1m');
    const [file = ''] = readdirSync(join(folder.path, 'out'));
    const text = readFileSync(join(folder.path, 'out', file), 'utf8');
    expect(text.match(/- name/g)).toHaveLength(2);
    expect(text).toContain('- blog\n        - shop');
    const valid = await ebb(['validate', 'out', '--config', 'scale.yaml', '--fleet', 'fleet.json', '--strict']);
    expect(valid).toMatchObject({ status: 0 });
    const diff = await ebb(['diff', 'none.yaml', 'out', '--config', 'scale.yaml', '--fleet', 'fleet.json']);
    expect(diff.stdout).toContain('3 of 4 computes change');
    expect(diff.stdout).toContain('suspends after 5m → 1m');
    const again = await ebb(['recommend', '--config', 'scale.yaml', ...FILES, '--write', 'out']);
    expect(again).toMatchObject({ status: 1, stderr: expect.stringContaining('is there already') });
  });

  it('promises in ebb diff what it promised itself, compute by compute', async () => {
    const written = await ebb(['recommend', '--json', '--config', 'scale.yaml', ...FILES, '--write', 'promised']);
    const promised = JSON.parse(written.stdout).findings as Record<string, unknown>[];
    const diff = await ebb(['diff', 'none.yaml', 'promised', '--json', '--config', 'scale.yaml', ...FILES]);
    expect(diff).toMatchObject({ status: 0, stderr: '' });
    const { computes, saves } = JSON.parse(diff.stdout);
    const byPolicy = promised.filter(({ policy }) => policy !== null);
    expect(byPolicy.map(({ figure }) => figure)).toEqual(['estimate', 'at_least', 'at_least']);
    expect(Object.fromEntries(computes.map((one: Record<string, unknown>) => [one.compute_id, one.saves]))).toEqual(
      Object.fromEntries(
        byPolicy.map(({ compute_id: id, finding, figure, saves: own }) => [
          id,
          [{ finding, figure, ...(own as object) }],
        ]),
      ),
    );
    expect(saves.map(({ figure, findings: many }: Record<string, unknown>) => [figure, many])).toEqual([
      ['estimate', 1],
      ['at_least', 2],
    ]);
    // The month that plan and diff show is their sum.
    const sum = byPolicy.reduce((all, one) => all + (one.saves as { usd_month: { mid: number } }).usd_month.mid, 0);
    const texts = [
      ['diff', 'none.yaml', 'promised'],
      ['plan', '--policies', 'promised'],
    ].map((command) => ebb([...command, '--config', 'scale.yaml', ...FILES]));
    // Each finding is rounded to cents.
    for (const { stdout, stderr } of await Promise.all(texts))
      expect(Number(/ saves \$([\d.]+) a month/.exec(stdout)?.[1]), stdout + stderr).toBeCloseTo(sum, 1);
  });

  it('says nothing in ebb diff of what it would not propose', async () => {
    await ebb(['recommend', '--config', 'scale.yaml', ...FILES, '--write', 'other']);
    const [file = ''] = readdirSync(join(folder.path, 'other'));
    const path = join(folder.path, 'other', file);
    writeFileSync(path, readFileSync(path, 'utf8').replace('max: 1m', 'max: 4m'));
    const diff = await ebb(['diff', 'none.yaml', 'other', '--json', '--config', 'scale.yaml', ...FILES]);
    expect(JSON.parse(diff.stdout).saves).toMatchObject([{ figure: 'estimate', findings: 1 }]);
    const without = await ebb([
      ...['diff', 'none.yaml', 'other', '--json', '--config', 'scale.yaml', '--fleet', 'fleet.json'],
    ]);
    expect(JSON.parse(without.stdout).saves).toEqual([]);
  });

  it('contradicts no policy that sets the field already', async () => {
    await ebb(['recommend', '--config', 'scale.yaml', ...FILES, '--write', 'present']);
    const found = await findings('scale', '--policies', 'present');
    const shop = found.find(({ compute_id: id }) => id === 'ep-shop');
    expect(shop).toMatchObject({ policy: null, done_by: 'policy recommended-sleep-after-1m' });
    const text = await ebb(['recommend', '--policies', 'present', '--config', 'scale.yaml', ...FILES]);
    expect(text.stdout).toContain('suspend_after 5m → 1m, done by policy recommended-sleep-after-1m');
    expect(text.stdout).toMatch(/^by existing policies, at_least: /m);
    const file = join(folder.path, 'present', readdirSync(join(folder.path, 'present'))[0] ?? '');
    writeFileSync(file, readFileSync(file, 'utf8').replace('max: 1m', 'max: 4m'));
    const other = (await findings('scale', '--policies', 'present')).find(({ compute_id: id }) => id === 'ep-shop');
    expect(other).toMatchObject({
      policy: null,
      evidence: expect.arrayContaining([expect.stringMatching(/decides this/)]),
    });
    expect(other).not.toHaveProperty('done_by');
    expect(other).toMatchObject({ set_by: 'policy recommended-sleep-after-1m' });
    const there = await ebb(['recommend', '--policies', 'present', '--config', 'scale.yaml', ...FILES]);
    expect(there.stdout).toContain('suspend_after 5m → 1m, set by policy recommended-sleep-after-1m: change it there');
    expect(there.stdout).toMatch(/^by changing existing policies and holds, at_least: 2 findings/m);
  });

  it('prints markdown in which names can be nothing but names', async () => {
    const { stdout } = await ebb(['recommend', '--format', 'markdown', '--config', 'scale.yaml', ...FILES]);
    expect(stdout).toContain('### ebb recommend: 4 findings');
    expect(stdout).toContain('| `shop / ep-shop` | `unowned` | suspend_after 5m → 1m |');
  });
});

it.each([
  ['the settings say so', 'plan: launch\n'],
  ['nobody says so', ''],
])(
  'on a live Launch account it only reads, wakes nothing, and what it writes is not refused, if %s',
  async (_who, plan) => {
    const platform = await startTestPlatform(
      {
        cron: { load: [{ class: 'cron_ping', cu: 0.1, everySeconds: 1800 }] },
        never: { state: 'active', suspendTimeoutSeconds: -1 },
        calm: {},
      },
      { historyMs: 10 * DAY },
    );
    onTestFinished(() => platform.close());
    await platform.control('plan', { plan: 'launch' });
    const own = await makeFolder({ 'ebb.yaml': `${plan}mode: enforce\n` });
    onTestFinished(() => own.remove());
    const queue = await prepareQueue(own.path);
    const env = { EBB_API_URL: platform.url, EBB_API_KEY: platform.apiKey, EBB_QUEUE_URL: queue.url };
    const live = async (...args: string[]) => {
      const child = startEbb(args, { cwd: own.path, env: { ...env, EBB_GROUP: queue.group } });
      expect({ status: await child.ended, stderr: child.stderr() }).toMatchObject({ status: 0 });
      return child.lines.join('\n');
    };
    const { findings: found } = JSON.parse(await live('recommend', '--json', '--write', 'out')) as {
      findings: { compute_id: string; proposed: object }[];
    };
    const proposed = found.filter((one) => Object.keys(one.proposed).length > 0);
    expect(proposed).toEqual([
      expect.objectContaining({ compute_id: 'ep-never', proposed: { suspend_timeout_seconds: 300 } }),
    ]);
    expect(await platform.writes()).toEqual([]);
    const answer = await request(`${platform.origin}/_emulator/state`);
    const { computes } = (await answer.body.json()) as { computes: { compute_id: string; active_seconds: number }[] };
    expect(computes).toContainEqual(expect.objectContaining({ compute_id: 'ep-calm', active_seconds: 0 }));

    await live('apply', '--yes', '--policies', 'out');
    expect((await platform.writes()).map(({ route, status }) => `${route} ${status}`)).toEqual([
      expect.stringMatching(/endpoint_id\} 200$/),
    ]);
  },
);
