import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { workflowCommand } from '../../src/cli/validate/report.ts';
import { startEbb } from '../support/ebb-process.ts';
import { makeFolder, type Platform, startTestPlatform } from '../support/platform.ts';
import { fleetFile } from './fleet-files.ts';

const AT = ['--at', '2026-11-21T00:00:00Z'];
const BRANCHES = '/projects/{project_id}/branches';

const GOOD = `version: 1
policies:
  - name: nights
    kind: schedule
    select: { projects: ["web-*"] }
    windows: [{ at: "Mon-Fri 08:00-18:00", size: 1 }]
    otherwise: { size: 0.25, suspend_after: 5m }
`;
const REST = `version: 1
policies: [{ name: rest, kind: limits, select: { projects: ["web-*"] }, size: 0.25-1 }]
`;
const WARNED = GOOD.replace('Mon-Fri 08:00-18:00', '2026-01-01/2026-02-01');
const AWAKE = `version: 1
sources: { counts: { from: postgres, dsn_env: EBB_DSN_A, every: 1m } }
policies:
  - { name: room, kind: headroom, select: { projects: ["*"] }, connections: counts, target: 70%, max_size: 8 }
  - name: nights
    kind: schedule
    select: { projects: ["web-*"] }
    windows: [{ at: "Mon-Fri 08:00-18:00", size: 1 }]
    otherwise: { size: 0.25, suspend_after: 5m }
`;
const PREVIEWS = `version: 1
policies:
  - name: previews
    kind: schedule
    select: { branches: ["preview/*"] }
    windows: [{ at: always, size: 0.5 }]
    otherwise: baseline
  - { name: shops, kind: freeze, select: { projects: [shop, blog] }, at: always }
  - { name: shpos, kind: freeze, select: { projects: [shpo] }, at: always }
`;

let platform: Platform;
let folder: { path: string; remove(): Promise<void> };

beforeAll(async () => {
  platform = await startTestPlatform({
    shop: { branch: { name: 'main', default: true }, createdAtMs: Date.UTC(2025, 0, 1) },
    blog: { branch: { name: 'preview/login' }, createdAtMs: Date.UTC(2025, 0, 1) },
  });
  folder = await makeFolder({
    'good.yaml': GOOD,
    'off.yaml': `${GOOD.replace('nights', 'off')}    enabled: false\n`,
    'warned.yaml': WARNED,
    'awake.yaml': AWAKE,
    'previews.yaml': PREVIEWS,
    'broken.yaml': GOOD.replace('size: 1 ', 'size: 99 '),
    'large.yaml': GOOD.replace('size: 1 ', 'size: 4 '),
    'version.yaml': 'version: 2\n',
    'fleet.json': fleetFile({ 'web-shop/ep-busy': {}, 'web-shop/ep-two': {}, 'other/ep-other': {} }),
    'free.yaml': 'plan: free\n',
    'odd.yaml': 'mode: enforec\n',
    'later.yaml': WARNED.replace('nights', 'later'),
    'unread.yaml': 'version: 1\nowner: "team-ops" # of all\npolicies: [',
    'gap.yaml': GOOD.replace('nights', 'gap').replace('{ size: 0.25, suspend_after: 5m }', 'leave'),
    'rest.yaml': REST,
    'no-rest.yaml': REST.replace('-1 ', '-99 '),
    'teams.yaml': 'teams: { team-web: { policies: [no-rest.yaml], projects: ["web-*"] } }\n',
    'plain.yaml': `mode: enforec
api_url: http://api.example/api/v2
notify: { dev: { to: webhook, url: "http://127.0.0.1:9", secret_env: EBB_NOTIFY_SECRET_DEV, owners: [team-wbe, team-ops] } }
teams: { team-web: { policies: [good.yaml], projects: ["web-*"] } }
`,
    'owners.yaml': `owners: { "web-*": team-wbe }
teams: { team-web: { policies: [good.yaml], projects: ["web-*"] } }
notify: { dev: { to: webhook, url: "http://127.0.0.1:9", secret_env: EBB_NOTIFY_SECRET_DEV, owners: [team-webs] } }
`,
  });
});

afterAll(async () => {
  await platform.close();
  await folder.remove();
});

async function validate(args: readonly string[], env: Record<string, string> = {}) {
  const process = startEbb(['validate', ...args], { cwd: folder.path, env });
  const status = await process.ended;
  return { status, stdout: process.lines.join('\n'), stderr: process.stderr().trimEnd() };
}

describe('ebb validate', () => {
  it('says that all is well', async () => {
    expect(await validate(['good.yaml'])).toEqual({
      status: 0,
      stdout: 'no problems: 1 policy in 1 file',
      stderr: '',
    });
  });

  it('counts what is not enabled, too', async () => {
    expect(await validate(['good.yaml', 'off.yaml'])).toMatchObject({
      status: 0,
      stdout: 'no problems: 2 policies (1 disabled) in 2 files',
    });
  });

  it('says file, line and column of what is wrong, and shows the line', async () => {
    const { status, stdout, stderr } = await validate(['broken.yaml']);
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr).toMatch(/^broken\.yaml:6:\d+: .*99/);
    expect(stderr).toContain('size: 99');
  });

  it('shows a warning with its code and its place, and is content all the same', async () => {
    expect(await validate(['warned.yaml', ...AT])).toEqual({
      status: 0,
      stdout: '1 warning: 1 policy in 1 file',
      stderr: [
        'warning: warned.yaml:6:21: ended at 2026-02-01T00:00:00Z; remove it [never-opens]',
        '  6 |     windows: [{ at: "2026-01-01/2026-02-01", size: 1 }]',
        '    |                     ^^^^^^^^^^^^^^^^^^^^^^^',
      ].join('\n'),
    });
  });

  it('with --strict is content with no warning, nor with a policy that selects nothing', async () => {
    const strict = await validate(['warned.yaml', '--strict', ...AT]);
    expect(strict).toMatchObject({ status: 1, stdout: '' });
    expect(strict.stderr).toContain('warned.yaml:6:21: ended at 2026-02-01T00:00:00Z; remove it [never-opens]');
    expect(await validate(['good.yaml', '--strict', ...AT])).toMatchObject({ status: 0 });
    const json = await validate(['previews.yaml', '--strict', '--json', '--fleet', 'fleet.json', ...AT]);
    expect(json.status).toBe(1);
    const { ok, problems } = JSON.parse(json.stdout);
    expect(ok).toBe(false);
    expect(problems).toContainEqual(
      expect.objectContaining({ code: 'matches-nothing', severity: 'error', policy: 'shpos' }),
    );
  });

  it('is not content with an error that it foresees', async () => {
    const { status, stdout, stderr } = await validate(['awake.yaml', ...AT]);
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr).toMatch(
      /^awake\.yaml:2:65: asking every 1m keeps computes awake that "nights" \(awake\.yaml:5\) wants asleep after 5m; write every: 6m or more, or take the counts from prometheus \[probe-keeps-awake\]\n {2}2 \| sources:/,
    );
  });

  it('prints JSON on stdout, whatever it found', async () => {
    const [good, warned, awake, version] = await Promise.all([
      validate(['good.yaml', '--json']),
      validate(['warned.yaml', '--json', ...AT]),
      validate(['awake.yaml', '--json', ...AT]),
      validate(['version.yaml', '--format', 'json']),
    ]);
    const hash = expect.stringMatching(/^[0-9a-f]+$/);
    expect([good.status, JSON.parse(good.stdout)]).toEqual([
      0,
      { ok: true, policies: 1, disabled: 0, hash, warnings: [], problems: [] },
    ]);
    const place = { file: 'warned.yaml', line: 6, column: 21, policy: 'nights', severity: 'warning' };
    expect([warned.status, JSON.parse(warned.stdout)]).toEqual([
      0,
      {
        ...{ ok: true, policies: 1, disabled: 0, hash, problems: [] },
        warnings: [
          {
            ...place,
            code: 'never-opens',
            message: 'ended at 2026-02-01T00:00:00Z; remove it',
            excerpt: expect.anything(),
          },
        ],
      },
    ]);
    expect([awake.status, JSON.parse(awake.stdout)]).toEqual([
      1,
      expect.objectContaining({ ok: false, problems: [expect.objectContaining({ code: 'probe-keeps-awake' })] }),
    ]);
    expect([version.status, version.stderr, JSON.parse(version.stdout)]).toEqual([
      1,
      '',
      {
        ok: false,
        warnings: [],
        problems: expect.arrayContaining([expect.objectContaining({ file: 'version.yaml', line: 1 })]),
      },
    ]);
  });

  it('prints workflow commands for GitHub', async () => {
    const [warned, broken] = await Promise.all([
      validate(['warned.yaml', '--format', 'github', ...AT]),
      validate(['broken.yaml', '--format', 'github']),
    ]);
    expect(warned).toEqual({
      status: 0,
      stdout: [
        '::warning file=warned.yaml,line=6,col=21,endColumn=44,title=never-opens::ended at 2026-02-01T00:00:00Z; remove it',
        '1 warning: 1 policy in 1 file',
      ].join('\n'),
      stderr: '',
    });
    expect(broken).toEqual({
      status: 1,
      stdout: '::error file=broken.yaml,line=6,col=50,endColumn=52,title=value::99 CU is not a size; the nearest is 56',
      stderr: '',
    });
  });

  it('checks what the settings name when it is given no path, without a key', async () => {
    const named = await validate([], { EBB_POLICIES: 'good.yaml', EBB_API_KEY_FILE: 'not-there' });
    expect(named).toMatchObject({ status: 0, stdout: expect.stringContaining('no problems') });
    const broken = await validate([], { EBB_POLICIES: 'good.yaml', EBB_MODE: 'enforec' });
    expect(broken).toMatchObject({
      status: 1,
      stderr: 'ebb: EBB_MODE: "enforec" is not known; use observe or enforce',
    });
  });

  it('says what is wrong with policies together with what is wrong with the settings', async () => {
    const { status, stderr } = await validate(['--config', 'odd.yaml'], { EBB_POLICIES: 'broken.yaml' });
    expect({ status, lines: stderr.split('\n') }).toEqual({
      status: 1,
      lines: expect.arrayContaining([
        'odd.yaml:1:1: mode "enforec" is not known; use observe or enforce',
        expect.stringMatching(/^broken\.yaml:6:\d+: 99 CU is not a size/),
      ]),
    });
    // Teams, which the settings would define, may use the same names.
    const same = await validate(['--config', 'odd.yaml'], { EBB_POLICIES: 'good.yaml,warned.yaml' });
    expect(same.stderr).toBe('ebb: odd.yaml:1:1: mode "enforec" is not known; use observe or enforce');
  });

  it('checks the owners that the settings name when it is given no path', async () => {
    const { status, stderr } = await validate(['--config', 'owners.yaml', ...AT], { EBB_POLICIES: 'good.yaml' });
    expect({ status, stderr: stderr.split('\n') }).toEqual({
      status: 1,
      stderr: [
        'warning: owners.yaml: owners."web-*": no team or policy file has the owner "team-wbe"; did you mean "team-web"?',
        'ebb: owners.yaml: notify.dev.owners: no owner is named "team-webs"; did you mean "team-web"?',
      ],
    });
    expect((await validate(['good.yaml', '--config', 'owners.yaml', ...AT])).status).toBe(0);
  });

  it('says what is wrong with combinations and owners together with what else is wrong with the settings', async () => {
    const { stderr } = await validate(['--config', 'plain.yaml', ...AT], { EBB_POLICIES: 'good.yaml,unread.yaml' });
    const told = stderr.split('\n').filter((line) => /^plain\.yaml/.test(line));
    expect(told).toEqual([
      'plain.yaml:1:1: mode "enforec" is not known; use observe or enforce',
      expect.stringMatching(/^plain\.yaml:2:1: http would send the API key unencrypted/),
      'plain.yaml: notify.dev.owners: no owner is named "team-wbe"; did you mean "team-web"?',
    ]);
  });

  it('checks what can be read, and the owners, also where a file of no team can not be read', async () => {
    const files = 'good.yaml,unread.yaml,later.yaml';
    const { status, stdout, stderr } = await validate(['--config', 'owners.yaml', ...AT], { EBB_POLICIES: files });
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr).toContain('warning: later.yaml:6:21: ended at 2026-02-01T00:00:00Z; remove it [never-opens]');
    expect(stderr).toMatch(/^unread\.yaml:3:/m);
    expect(stderr).toContain('owners.yaml: notify.dev.owners: no owner is named "team-webs"; did you mean "team-web"?');
    const json = await validate(['later.yaml', 'broken.yaml', '--json', ...AT]);
    const { warnings, hash } = JSON.parse(json.stdout);
    expect([hash, warnings]).toEqual([undefined, [expect.objectContaining({ code: 'never-opens' })]]);
    // The owner may be defined by a file that is missing.
    const missing = await validate(['--config', 'owners.yaml', ...AT], { EBB_POLICIES: 'good.yaml,missing.yaml' });
    expect(missing.stderr).not.toContain('no owner is named');
  });

  it('misses no value that a file with a problem may have, also of a team', async () => {
    const codes = async (files: string, ...args: string[]) => {
      const { stdout } = await validate(['--json', ...args, ...AT], { EBB_POLICIES: files });
      const { problems, warnings } = JSON.parse(stdout);
      return [problems.length, warnings.map(({ code }: { code: string }) => code)];
    };
    expect(await codes('gap.yaml')).toEqual([0, ['no-value']]);
    expect(await codes('gap.yaml,off.yaml')).toEqual([0, ['no-value']]);
    expect(await codes('gap.yaml,rest.yaml')).toEqual([0, []]);
    expect(await codes('gap.yaml,no-rest.yaml')).toEqual([1, []]);
    expect(await codes('gap.yaml', '--config', 'teams.yaml')).toEqual([1, []]);
  });

  it('rejects what the plan of an account refuses', async () => {
    const { status, stdout, stderr } = await validate(['large.yaml', '--config', 'free.yaml', ...AT]);
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr).toMatch(
      /^large\.yaml:6:\d+: the free plan of account default refuses 4 CU; 2 CU is its largest size \[plan-refuses\]\n/,
    );
    expect((await validate(['good.yaml', '--config', 'free.yaml', ...AT])).status).toBe(0);
  });

  it('needs no settings for policies that are named, and says what it then does not know', async () => {
    const { status, stderr } = await validate(['good.yaml'], { EBB_MODE: 'enforec' });
    expect({ status, stderr }).toEqual({
      status: 0,
      stderr:
        'note: the plans and sources of the settings are not known: EBB_MODE: "enforec" is not known; use observe or enforce',
    });
    expect((await validate(['good.yaml', '--config', 'odd.yaml'])).status).toBe(1);
  });

  it('says what is wrong with --at', async () => {
    expect(await validate(['good.yaml', '--at', 'noon'])).toEqual({
      status: 1,
      stdout: '',
      stderr: 'ebb: --at: noon is not an instant; write for example 2026-03-02T08:00:00+01:00',
    });
  });
});

describe('ebb validate --matches', () => {
  const live = () => ({ EBB_API_URL: platform.url, NEON_API_KEY: platform.apiKey });

  it('lists what each policy selects in a fleet file, without a key', async () => {
    const { status, stdout, stderr } = await validate(['good.yaml', '--matches', '--fleet', 'fleet.json']);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout.split('\n')).toEqual([
      'nights selects 2 computes',
      '  ep-busy  web-shop',
      '  ep-two  web-shop',
      'no problems: 1 policy in 1 file',
    ]);
  });

  it('asks the control API, and warns of a policy that matches nothing', async () => {
    const { status, stdout } = await validate(['previews.yaml', '--matches', '--json'], live());
    const { matches, warnings, branch_names_refused } = JSON.parse(stdout);
    expect({ status, matches, branch_names_refused }).toEqual({
      status: 0,
      matches: [
        { policy: 'previews', computes: ['ep-blog'] },
        { policy: 'shops', computes: ['ep-blog', 'ep-shop'] },
        { policy: 'shpos', computes: [] },
      ],
      branch_names_refused: [],
    });
    expect(warnings).toEqual([expect.objectContaining({ code: 'matches-nothing', policy: 'shpos', line: 9 })]);
  });

  it('says where names of branches cannot be read, so that policies do not match', async () => {
    await platform.control('faults', { kind: 'status', status: 403, route: BRANCHES });
    const { status, stdout, stderr } = await validate(['previews.yaml', '--matches'], live()).finally(() =>
      platform.clearFaults(),
    );
    expect({ status, notes: stderr.split('\n').filter((line) => line.startsWith('note:')) }).toEqual({
      status: 0,
      notes: [
        'note: the key may not list the branches of blog, shop: policies that select by name or role of a branch do not apply there, except freezes',
      ],
    });
    expect(stderr).toContain(
      'selects no compute of the fleet; check its names, or remove the policy [matches-nothing]',
    );
    expect(stdout).toContain(
      'previews selects 0 computes; of 2 more the names or roles that it selects by are not known\n',
    );
  });

  it('is not content with a part of the fleet', async () => {
    await platform.control('faults', {
      ...{ kind: 'status', status: 403, message: 'not yours', count: 1 },
      route: '/projects/{project_id}/endpoints',
    });
    const { status, stdout, stderr } = await validate(['previews.yaml', '--matches'], live()).finally(() =>
      platform.clearFaults(),
    );
    expect(status).toBe(1);
    expect(stderr).toMatch(/^note: left out: .*not yours/);
    expect(stderr).toContain('note: a part of the fleet is missing, so warnings are based on the selectors alone');
    expect(stdout).toContain('shops selects 1 compute\n');
  });

  it('needs a key for the live fleet', async () => {
    const { status, stderr } = await validate(['good.yaml', '--matches'], { EBB_API_URL: platform.url });
    expect({ status, stderr }).toEqual({ status: 1, stderr: expect.stringMatching(/^ebb: .*EBB_API_KEY/) });
  });
});

describe('a workflow command', () => {
  it('escapes what the runner would take for its own', () => {
    const problem = {
      file: 'a,b:c%.yaml',
      line: 1,
      column: 2,
      code: 'value' as const,
      message: '50% is\r\nwrong: a,b',
    };
    expect(workflowCommand('error', problem)).toBe(
      '::error file=a%2Cb%3Ac%25.yaml,line=1,col=2,title=value::50%25 is%0D%0Awrong: a,b',
    );
    expect(workflowCommand('notice', { message: 'all of it' })).toBe('::notice::all of it');
  });
});
