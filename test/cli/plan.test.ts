import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import { createColors } from 'picocolors';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { describePlan } from '../../src/cli/plan/describe-plan.ts';
import { openStore } from '../../src/compose/store.ts';
import { planFleet } from '../../src/domain/evaluate/plan-fleet.ts';
import { readSettings } from '../../src/settings/settings.ts';
import { aCompute, aRecord, aSchedule, at, compiled } from '../support/builders.ts';
import { startTestDaemon } from '../support/daemon.ts';
import { startEbb } from '../support/ebb-process.ts';
import { makeFolder, prepareQueue, startTestPlatform } from '../support/platform.ts';
import { replaceFile } from '../support/replace-file.ts';
import { FLEET, fleetFile, MONDAY_NINE, POLICIES } from './fleet-files.ts';

const ACTIVE = /^ebb_compute_state\{.*state="active"\} 1$/gm;

const always = (size: string) => `version: 1
policies:
  - name: always
    kind: schedule
    select: { projects: ["*"], min_age: 1m }
    windows: [{ at: always, size: ${size} }]
    otherwise: leave
`;

const folder = mkdtempSync(join(tmpdir(), 'ebb-plan-'));

beforeAll(() => {
  writeFileSync(join(folder, 'policy.yaml'), POLICIES);
  writeFileSync(join(folder, 'fleet.json'), FLEET);
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function ebb(args: readonly string[], env: Record<string, string> = {}) {
  const run = startEbb(args, { cwd: folder, env: { EBB_POLICIES: 'policy.yaml', ...env } });
  const status = await run.ended;
  return { status, stdout: run.lines.join('\n'), stderr: run.stderr().trimEnd() };
}

const plan = (...args: string[]) => ebb(['plan', '--fleet', 'fleet.json', '--at', MONDAY_NINE, ...args]);

/** The contract: design, "Names that other things depend on". */
const settings = (type: unknown) => ({
  min_cu: { type },
  max_cu: { type },
  suspend_timeout_seconds: { type },
});
const ACTIONS = {
  type: 'array',
  items: {
    type: 'object',
    additionalProperties: false,
    required: ['kind', 'disconnects'],
    properties: {
      kind: { enum: ['update', 'restart'] },
      fields: { type: 'object', additionalProperties: false, properties: settings('number') },
      disconnects: { type: 'boolean' },
    },
  },
};
const SCHEMA = {
  type: 'object',
  additionalProperties: false,
  required: ['at', 'hash', 'computes'],
  properties: {
    at: { type: 'string', pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\dZ$' },
    hash: { type: 'string', pattern: '^[0-9a-f]{64}$' },
    computes: {
      type: 'array',
      items: {
        type: 'object',
        additionalProperties: false,
        required: ['project_id', 'compute_id', 'current', 'desired', 'verdict', 'actions', 'reasons'],
        properties: {
          project_id: { type: 'string' },
          compute_id: { type: 'string' },
          current: {
            type: 'object',
            additionalProperties: false,
            required: ['min_cu', 'max_cu', 'suspend_timeout_seconds', 'state'],
            properties: { ...settings('number'), state: { enum: ['init', 'active', 'idle'] } },
          },
          desired: {
            type: 'object',
            additionalProperties: false,
            required: ['min_cu', 'max_cu', 'suspend_timeout_seconds'],
            properties: settings(['number', 'null']),
          },
          verdict: { enum: ['act', 'wait', 'none'] },
          actions: ACTIONS,
          held: ACTIONS,
          until: { type: 'string' },
          reasons: {
            type: 'array',
            minItems: 1,
            items: {
              type: 'object',
              additionalProperties: false,
              required: ['code', 'message'],
              properties: { code: { type: 'string' }, policy: { type: 'string' }, message: { type: 'string' } },
            },
          },
        },
      },
    },
  },
};
const isPlan = new Ajv({ allowUnionTypes: true }).compile(SCHEMA);

describe('ebb plan on a fleet file', () => {
  it('shows what is to be changed now, what waits and why, and sums up; exit code 2', async () => {
    const { status, stdout, stderr } = await plan();
    expect({ status, stderr }).toEqual({ status: 2, stderr: '' });
    const window = 'window 1 of office-hours, priority 100, open since Mon 2 Mar 2026, 08:00 [window_open]';
    expect(stdout).toBe(`Plan for Mon 2 Mar 2026, 09:00 (UTC)

To change now:
  ~ web-shop / ep-busy  active
      suspend_after 5m → never: ${window}
      size 0.25-1 → 1-4 CU: ${window}
      waits: ebb has just discovered this active compute: waiting for sleep or for the next boundary [newly_discovered]
      next check at Mon 2 Mar 2026, 18:00
  ↓ web-shop / ep-asleep  idle
      size 2-8 → 1-4 CU: ${window}
      suspend_after 5m → never: ${window}

2 to change now, 0 waiting, 1 as wanted, 1 selected by no policy
Exit code 2: there is something to do, now or later.`);
  });

  it('shows computes to which the same is done once, with their names, in the times of a zone', async () => {
    const shops = Array.from({ length: 10 }, (_, index) => [`web-${index}/ep-${index}`, { state: 'idle' }]);
    writeFileSync(join(folder, 'many.json'), fleetFile(Object.fromEntries(shops)));
    const { stdout } = await plan('--fleet', 'many.json', '--zone', 'America/New_York');
    const window = 'window 1 of office-hours, priority 100, open since Mon 2 Mar 2026, 03:00 [window_open]';
    expect(stdout).toBe(`Plan for Mon 2 Mar 2026, 04:00 (America/New_York)

To change now:
  ↑ 10 computes: ${[0, 1, 2, 3, 4, 5, 6, 7].map((one) => `web-${one} / ep-${one}`).join(', ')}, and 2 more  idle
      size 0.25-1 → 1-4 CU: ${window}
      suspend_after 5m → never: ${window}

10 to change now, 0 waiting, 0 as wanted
Exit code 2: there is something to do, now or later.`);
    const { stdout: one } = await plan('--fleet', 'many.json', 'web-3', 'ep-4');
    expect(one).toContain('2 computes: web-3 / ep-3, web-4 / ep-4  idle');
    expect((await plan('--fleet', 'many.json', 'shop')).stderr).toContain('no compute or project is called shop');
    expect((await plan('--out', 'plan.json', 'web-3')).stderr).toContain('leave out names, --owner and --select');
  });

  it('sums many computes up by team, equal changes together; a team, names or --all show each', async () => {
    const web = Array.from({ length: 40 }, (_, index) => [
      `web-${index}/ep-w${index}`,
      { state: index < 3 ? 'active' : 'idle' },
    ]);
    const api = Array.from({ length: 20 }, (_, index) => [
      `api-${index}/ep-a${index}`,
      { state: 'idle', min_cu: 2, max_cu: 8 },
    ]);
    writeFileSync(join(folder, 'teams.json'), fleetFile(Object.fromEntries([...web, ...api])));
    for (const team of ['web', 'api']) {
      const windows = 'windows: [{ at: Mon-Fri 08:00-18:00, size: 1-4 }], otherwise: leave';
      const policy = `{ name: ${team}-hours, kind: schedule, select: { projects: ["${team}-*"] }, ${windows} }`;
      writeFileSync(join(folder, `${team}.yaml`), `version: 1\nowner: team-${team}\npolicies: [${policy}]\n`);
    }
    const many = (...args: string[]) => plan('--fleet', 'teams.json', '--policies', 'web.yaml,api.yaml', ...args);
    const { status, stdout } = await many();
    expect(status).toBe(2);
    expect(stdout).toBe(`Plan for Mon 2 Mar 2026, 09:00 (UTC)

team      raised  lowered  timeout  restarts  waiting  CU-hours/month saved  $/month saved
team-api       0       20        0         0        0                     ?              ?
team-web      37        0        0         0        3                     ?              ?

To change now:
  ↑ 37 × size 0.25-1 → 1-4 CU (team-web 37)
  ↓ 20 × size 2-8 → 1-4 CU (team-api 20)

Waiting:
  … 3 × size 0.25-1 → 1-4 CU, would restart (team-web 3) [newly_discovered]

Details: ebb plan --owner TEAM, or --all

57 to change now, 3 waiting, 0 as wanted
Exit code 2: there is something to do, now or later.`);
    const [all, one] = [await many('--all'), await many('--owner', 'team-api')];
    expect([all.stdout, one.stdout]).toEqual([
      expect.stringContaining('ep-w10,'),
      expect.stringContaining('20 computes: api-0 / ep-a0'),
    ]);
    expect((await many('--json')).stdout).toBe((await many('--json', '--all')).stdout);
  });

  it('compares its month with the baselines, so that what ebb has just set does not change the saving', async () => {
    const before = { min_cu: 4, max_cu: 4, suspend_timeout_seconds: -1 };
    const hours = Array.from({ length: 168 }, (_, hour) => {
      const start = new Date(Date.parse(MONDAY_NINE) - (168 - hour) * 3_600_000).toISOString();
      return `web-shop/br-a,web-shop,br-a,${start},3600,14400`;
    });
    writeFileSync(
      join(folder, 'used.csv'),
      `unit,project_id,branch_id,start,seconds,cu_seconds\n${hours.join('\n')}\n`,
    );
    const monthOf = async (compute: object) => {
      writeFileSync(join(folder, 'month.json'), fleetFile({ 'web-shop/ep-a': compute }));
      const { stdout } = await plan('--fleet', 'month.json', '--usage', 'used.csv');
      return stdout.split('\n').at(-1);
    };
    const saves = 'With these policies it saves ';
    const day = { min_cu: 1, max_cu: 4, suspend_timeout_seconds: -1 };
    const night = { min_cu: 0.25, max_cu: 1, suspend_timeout_seconds: 300 };
    for (const now of [day, night]) {
      const text = await monthOf({ ...now, baseline: before });
      expect(text).toMatch(
        new RegExp(`^${saves}.* against the baselines \\(what was set before ebb, or by people since\\)`),
      );
    }
    expect(await monthOf(before)).toMatch(new RegExp(`^${saves}.* against what is set now`));
  });

  it('reads branches for --select, also where no policy selects by them', async () => {
    const main = { name: 'main', default: true, protected: false };
    writeFileSync(join(folder, 'branches.json'), fleetFile({ 'web-shop/ep-a': { branch: main }, 'web-shop/ep-b': {} }));
    const { stdout } = await plan('--fleet', 'branches.json', '--select', 'branch_roles=default', '--json');
    expect(JSON.parse(stdout).computes).toMatchObject([{ compute_id: 'ep-a' }]);
  });

  it('prints JSON of the promised form, the same for the same file and instant, and the timeout 0 as 300', async () => {
    const { status, stdout } = await plan('--json');
    const parsed = JSON.parse(stdout);
    expect(isPlan(parsed), JSON.stringify(isPlan.errors)).toBe(true);
    expect(status).toBe(2);
    expect((await plan('--json')).stdout).toBe(stdout);
    const { computes } = parsed;
    expect(computes.map((one: { compute_id: string; verdict: string }) => [one.compute_id, one.verdict])).toEqual([
      ['ep-other', 'none'],
      ['ep-asleep', 'act'],
      ['ep-busy', 'act'],
      ['ep-right', 'none'],
    ]);
    expect(computes[0]).toMatchObject({
      current: { suspend_timeout_seconds: 300 },
      desired: { min_cu: null, max_cu: null, suspend_timeout_seconds: null },
      reasons: [{ code: 'unmatched' }],
    });
    expect(computes[2]).toMatchObject({
      actions: [{ kind: 'update', fields: { suspend_timeout_seconds: -1 }, disconnects: false }],
      until: '2026-03-02T18:00:00Z',
    });
  });

  it('counts the fleet as met when the file was made, where it says so', async () => {
    writeFileSync(
      join(folder, 'dated.json'),
      fleetFile({ 'web-shop/ep-busy': {} }, { taken_at: '2026-03-02T07:30:00Z' }),
    );
    const { stdout, status } = await ebb(['plan', '--fleet', 'dated.json', '--at', MONDAY_NINE]);
    expect(status).toBe(2);
    expect(stdout).toContain('↑ web-shop / ep-busy  active, disconnects clients\n');
    expect(stdout).toContain('\n1 to change now (1 disconnects clients), 0 waiting, 0 as wanted');
  });

  it('ends with 0 where nothing is to be done', async () => {
    const at7 = ['--at', '2026-03-02T07:00:00Z'];
    writeFileSync(join(folder, 'done.json'), fleetFile({ 'web-shop/ep-busy': {}, 'other/ep-other': {} }));
    const { stdout, status } = await ebb(['plan', '--fleet', 'done.json', ...at7]);
    expect({ stdout, status }).toEqual({
      status: 0,
      stdout:
        'Plan for Mon 2 Mar 2026, 07:00 (UTC)\n\n0 to change now, 0 waiting, 1 as wanted, 1 selected by no policy',
    });
  });

  it('plans for observe mode when asked: then everything waits', async () => {
    const { stdout, status } = await plan('--mode', 'observe');
    expect(status).toBe(2);
    expect(stdout).toContain('0 to change now, 2 waiting');
    expect(stdout).toContain('waits: ebb runs in observe mode: nothing is written [observe]');
  });

  it('evaluates headroom with the connections of the file', async () => {
    const headroom = `version: 1
sources: { pg: { from: prometheus, url: "http://prometheus:9090", query: "x" } }
policies:
  - { name: room, kind: headroom, select: { projects: ["web-*"] }, connections: pg, target: 70%, critical: 90%, max_size: 8 }
`;
    writeFileSync(join(folder, 'headroom.yaml'), headroom);
    writeFileSync(join(folder, 'full.json'), fleetFile({ 'web-shop/ep-full': { connections: 440 } }));
    const env = { EBB_POLICIES: 'headroom.yaml' };
    const { stdout } = await ebb(['plan', '--fleet', 'full.json', '--at', MONDAY_NINE, '--json'], env);
    expect(JSON.parse(stdout).computes).toMatchObject([{ desired: { min_cu: 0.25, max_cu: 2 } }]);
  });

  it('writes the plan whole into a file, and says in one line why it cannot', async () => {
    const { stdout, status } = await plan('--out', 'plan.json');
    expect(status).toBe(2);
    expect(stdout.split('\n').at(-1)).toBe('The plan is in plan.json: ebb apply --plan plan.json');
    expect(isPlan(JSON.parse(readFileSync(join(folder, 'plan.json'), 'utf8')))).toBe(true);
    expect(await plan('--out', 'no/such/plan.json')).toEqual({
      status: 1,
      stdout: '',
      stderr: 'ebb: --out: no/such/plan.json cannot be written (ENOENT): check the path',
    });
  });

  it.each([
    [['--at', 'noon'], 'ebb: --at: noon is not an instant; write for example 2026-03-02T08:00:00+01:00'],
    [
      ['--fleet', 'gone.json'],
      'ebb: cannot read the fleet file gone.json (ENOENT); check the path and its permissions',
    ],
    [['--policies', 'gone.yaml'], expect.stringContaining('gone.yaml')],
  ])('ends with 1 and one line for %j', async (args, message) => {
    expect(await plan(...args)).toEqual({ status: 1, stdout: '', stderr: message });
  });
});

describe('ebb plan on the live fleet', () => {
  it('reads only, makes no store, and says what it assumes', async () => {
    const platform = await startTestPlatform({ 'web-shop': { minCu: 2, maxCu: 8 } });
    try {
      const env = { EBB_API_URL: platform.url, NEON_API_KEY: platform.apiKey };
      const { stdout, stderr, status } = await ebb(['plan'], env);
      expect({ status, stderr }).toEqual({
        status: 2,
        stderr: 'note: nothing is stored in embedded:.ebb yet: every compute counts as newly discovered',
      });
      expect(stdout).toContain('web-shop / ep-web-shop  idle');
      expect(stdout).toContain(
        '\nNo daemon answers. One with these settings would only observe, unless it runs with --mode',
      );
      expect(await platform.writes()).toEqual([]);
      expect(existsSync(join(folder, '.ebb'))).toBe(false);
      expect(await ebb(['plan'], { EBB_API_URL: platform.url })).toMatchObject({
        status: 1,
        stderr:
          'ebb: no API key: set EBB_API_KEY, or EBB_API_KEY_FILE to a file that holds it; to read only, NEON_API_KEY is enough',
      });
    } finally {
      await platform.close();
    }
  });
});

describe('ebb plan beside a daemon that has the embedded store for itself', () => {
  it.each([
    ['observe', 'The daemon observes: it writes none of these changes'],
    ['enforce', 'With these policies it changes nothing of the expected cost'],
  ])('asks a daemon with --mode %s for records, holds, freezes and its mode', async (mode, lastLine) => {
    const platform = await startTestPlatform({ 'web-shop': { minCu: 2, maxCu: 8 } });
    const queue = await prepareQueue(folder);
    const env = {
      EBB_API_URL: platform.url,
      EBB_API_KEY: platform.apiKey,
      EBB_QUEUE_URL: queue.url,
      EBB_GROUP: queue.group,
    };
    const read = readSettings({ env, cwd: folder });
    const opened = read.ok ? await openStore(read.settings) : read;
    if (!opened.ok) throw new Error(JSON.stringify(opened));
    const nowMs = Date.now();
    await opened.value.store.putHold({
      ...{ id: 'h-1', projectId: 'web-shop', computeId: 'ep-web-shop', owner: 'anna', reason: 'import', freeze: true },
      ...{ createdAtMs: nowMs - 1000, expiresAtMs: nowMs + 3_600_000 },
    });
    await opened.value.close();
    const daemon = await startTestDaemon({ platform, folder, env: { EBB_MODE: mode } });
    try {
      const { stdout, stderr, status } = await ebb(['plan', '--live'], env);
      expect({ status, stderr }).toEqual({ status: 2, stderr: '' });
      expect(stdout).toContain('waits: held as it is by anna until');
      expect(stdout.split('\n').at(-1)).toContain(lastLine);
    } finally {
      await daemon.stop();
      await platform.close();
    }
  });
});

it('a plan and an explanation say which changes wait for approval while policies are staged, in JSON by an added field', async () => {
  const names = Array.from({ length: 8 }, (_, index) => `app-${index}`);
  const platform = await startTestPlatform(Object.fromEntries(names.map((name) => [name, {}])), {
    operationTimeMs: 50,
  });
  const here = await makeFolder({ 'policy.yaml': always('0.5-1') });
  const queue = await prepareQueue(here.path);
  const env = {
    ...{ EBB_API_URL: platform.url, EBB_API_KEY: platform.apiKey, EBB_POLICIES: 'policy.yaml' },
    ...{ EBB_QUEUE_URL: queue.url, EBB_GROUP: queue.group },
  };
  const daemon = await startTestDaemon({ platform, folder: here.path, env: { EBB_STAGING: 'always' }, reloads: true });
  const shown = async (...args: string[]) => {
    const run = startEbb([...args, '--live'], { cwd: here.path, env });
    await run.ended;
    return run.lines;
  };
  try {
    await expect.poll(async () => (await platform.writes()).length).toBe(8);
    for (const name of names) await platform.control(`computes/ep-${name}/connect`, { connections: 2 });
    const metrics = async () => (await (await fetch(`${daemon.url}/metrics`)).text()).match(ACTIVE)?.length;
    await expect.poll(metrics).toBe(8);
    await replaceFile(join(here.path, 'policy.yaml'), always('2'));
    const staged = () => daemon.logs.find(({ event }) => event === 'ebb.policies_staged')?.hash;
    await expect.poll(staged).toBeDefined();
    expect((await shown('plan')).join('\n')).toContain('0 to change now, 8 waiting (8 for ebb approve), 0 as wanted');
    const { computes } = JSON.parse((await shown('plan', '--json')).join('\n'));
    expect(computes.map((one: { waits_for_approval?: string }) => one.waits_for_approval)).toEqual(names.map(staged));
    const explained = (await shown('explain', 'ep-app-0')).join('\n');
    expect(explained).toContain('To change, but not now');
    expect(explained).toContain('waits: the policy set is staged: ebb approve');
    const document = JSON.parse((await shown('explain', 'ep-app-0', '--json')).join('\n'));
    expect(document.waits_for_approval).toBe(staged());
  } finally {
    await daemon.stop();
    await platform.close();
    await here.remove();
  }
});

describe('a plan for people', () => {
  const plain = { colors: createColors(false), zone: 'UTC' };
  const situation = {
    ...{
      policies: compiled(aSchedule()),
      mode: 'enforce' as const,
      profiles: new Map(),
    },
    ...{ nowMs: at(MONDAY_NINE), disruption: undefined, manualChanges: undefined },
  } as const;

  it('puts raises first, and what waits by the instant until which it does', () => {
    const computes = [
      aCompute({ computeId: 'ep-low', projectId: 'p-1', minCu: 4, maxCu: 8, state: 'idle' }),
      aCompute({ computeId: 'ep-high', projectId: 'p-2', state: 'idle' }),
      aCompute({ computeId: 'ep-later', projectId: 'p-3' }),
      aCompute({ computeId: 'ep-soon', projectId: 'p-4', minCu: 4, maxCu: 8 }),
    ];
    const records = new Map([['ep-soon', aRecord({ lastApplied: { minCu: 4, maxCu: 8 } })]]);
    const text = describePlan(planFleet({ ...situation, computes, records }), plain);
    const order = ['ep-high', 'ep-low', 'ep-soon', 'ep-later'].map((id) => text.indexOf(id));
    expect(order).toEqual(order.toSorted((a, b) => a - b));
    expect(order).not.toContain(-1);
  });

  it('counts what at_once spreads apart from what waits for other reasons, as an announcement has all that restart', () => {
    const ids = Array.from({ length: 12 }, (_, index) => `ep-${index}`);
    const awake = ids.map((computeId) => aCompute({ computeId, projectId: computeId, minCu: 0.25, maxCu: 0.25 }));
    const records = new Map(ids.map((id) => [id, aRecord({ lastApplied: { minCu: 0.25, maxCu: 0.25 } })]));
    const manual = aCompute({ computeId: 'ep-manual', projectId: 'p-manual', minCu: 4, maxCu: 8 });
    records.set('ep-manual', aRecord({ lastApplied: { minCu: 4, maxCu: 8 } }));
    const text = describePlan(planFleet({ ...situation, computes: [...awake, manual], records }), plain);
    expect(text.split('\n').at(-1)).toBe(
      '5 to change now (5 disconnect clients), 8 waiting (7 disconnect clients as soon as at_once and at_most allow), 0 as wanted',
    );
  });

  it('colours on request only, and never lets a name steer the terminal', () => {
    const computes = [aCompute({ projectName: 'web\u001b[31m', state: 'idle' })];
    const fleet = planFleet({ ...situation, computes, records: new Map() });
    expect(describePlan(fleet, plain)).not.toContain('\u001b');
    const coloured = describePlan(fleet, { ...plain, colors: createColors(true) });
    expect(coloured).toContain('\u001b[1mPlan for');
    expect(coloured).toContain('web?[31m');
  });
});

describe('of a fleet that can be read in part only', () => {
  it('plan, forecast, diff and recommend say in what they print what is missing', async () => {
    const platform = await startTestPlatform({ shop: {}, blog: {} });
    const env = { EBB_API_URL: platform.url, EBB_API_KEY: platform.apiKey };
    const fault = { kind: 'status', status: 403, message: 'not yours', count: 1 };
    const inPart = async (...args: string[]) => {
      await platform.control('faults', { ...fault, route: '/projects/{project_id}/endpoints' });
      return ebb(args, env).finally(() => platform.clearFaults());
    };
    try {
      const { stdout, stderr } = await inPart('plan');
      expect(stdout).toMatch(/^Not in the plan: (shop|blog): .*not yours/m);
      expect(stderr).not.toContain('not yours');
      const others = [
        ['plan', '--json'],
        ['forecast', '--json'],
        ['recommend', '--format', 'json'],
      ];
      for (const args of [...others, ['diff', 'policy.yaml', 'policy.yaml', '--format', 'json']]) {
        const { missing } = JSON.parse((await inPart(...args)).stdout);
        expect([args[0], missing]).toEqual([args[0], [expect.stringContaining('not yours')]]);
      }
      expect(JSON.parse((await ebb(['plan', '--json'], env)).stdout)).not.toHaveProperty('missing');
    } finally {
      await platform.close();
    }
  });
});
