import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Ajv } from 'ajv';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { settingsFile } from '../../src/cli/init/files.ts';
import { DEFAULT_POLICY_SETTINGS, loadPolicySet } from '../../src/policy/load.ts';
import { readSettings } from '../../src/settings/settings.ts';
import { startEbb } from '../support/ebb-process.ts';
import { makeFolder, type Platform, startTestPlatform } from '../support/platform.ts';

const DAY_MS = 86_400_000;
const nowMs = Date.now();

let platform: Platform;
let folder: { path: string; remove(): Promise<void> };

beforeAll(async () => {
  platform = await startTestPlatform({
    docs: { state: 'active', createdAtMs: nowMs - 3 * DAY_MS, connections: 1 },
    shop: { state: 'active', createdAtMs: nowMs - 12.5 * DAY_MS, minCu: 1, maxCu: 4, suspendTimeoutSeconds: -1 },
    test: { minCu: 2, maxCu: 2 },
  });
});
afterAll(() => platform.close());
beforeEach(async () => {
  folder = await makeFolder({ key: `${platform.apiKey}\n` });
});
afterEach(() => folder.remove());

async function init(flags: readonly string[], env: Record<string, string> = {}) {
  const own = { EBB_API_URL: platform.url, EBB_API_KEY_FILE: 'key' };
  const process = startEbb(['init', ...flags], { cwd: folder.path, env: { ...own, ...env } });
  const status = await process.ended;
  return { status, stdout: process.lines.join('\n'), stderr: process.stderr().trimEnd() };
}

const textOf = (name: string) => readFileSync(join(folder.path, name), 'utf8');

describe('ebb init', () => {
  it('shows the fleet and what is awake longest, and says that nothing can be written', async () => {
    const { status, stdout, stderr } = await init([]);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout.replaceAll(platform.url, 'URL')).toBe(
      `
┌─────────┬─────────┬───────────┬──────────────┬────────┐
│ project │ compute │ size (CU) │ sleeps after │ state  │
├─────────┼─────────┼───────────┼──────────────┼────────┤
│ docs    │ ep-docs │ 0.25      │ 5m           │ active │
├─────────┼─────────┼───────────┼──────────────┼────────┤
│ shop    │ ep-shop │ 1-4       │ never        │ active │
├─────────┼─────────┼───────────┼──────────────┼────────┤
│ test    │ ep-test │ 2         │ 5m           │ idle   │
└─────────┴─────────┴───────────┴──────────────┴────────┘

3 computes in 3 projects: 2 awake, 1 never sleeps; 3.25 to 6.25 CU if all were awake.

Awake longest:
  shop / ep-shop: awake for 12 days, 1-4 CU, never sleeps
  docs / ep-docs: awake for 3 days, 0.25 CU, sleeps after 5m without activity

Written: baseline.json, fleet.json, policies/office-hours.yaml, schema/policies.schema.json, schema/settings.schema.json, ebb.yaml.
Nothing was changed at URL, and nothing can be: in mode observe ebb only reads.

Next:
  ebb report                                   what this period costs, and what would help
  ebb recommend --write recommended            all that could cost less, and policies for it
  cp recommended/*.yaml policies               those, or your own: docs/policies.md
  ebb validate --matches --fleet fleet.json    are they right, and what do they select
  ebb plan                                     what enforcing would change now, and what that saves a month
  ebb run                                      observe: http://127.0.0.1:9464 shows what would be done`.trim(),
    );
    expect(await platform.writes()).toEqual([]);
  });

  it('writes settings, a policy and a baseline that the other commands understand, without a key in them', async () => {
    await init([]);
    expect(readdirSync(folder.path).toSorted()).toEqual([
      'baseline.json',
      'ebb.yaml',
      'fleet.json',
      'key',
      'policies',
      'schema',
    ]);
    const read = readSettings({ env: {}, cwd: folder.path });
    expect(read).toMatchObject({
      ok: true,
      settings: {
        ...{ mode: 'observe', apiUrl: platform.url, policies: ['policies'] },
        accounts: [{ apiKey: { from: 'file', file: join(folder.path, 'key') } }],
      },
    });
    const loaded = await loadPolicySet({ paths: [join(folder.path, 'policies')], settings: DEFAULT_POLICY_SETTINGS });
    expect(loaded).toMatchObject({ ok: true, set: { policies: [] } });
    expect(JSON.parse(textOf('baseline.json'))).toMatchObject({
      api_url: platform.url,
      computes: [
        { project_id: 'docs', compute_id: 'ep-docs', min_cu: 0.25, max_cu: 0.25, suspend_timeout_seconds: 300 },
        { project_id: 'shop', compute_id: 'ep-shop', min_cu: 1, max_cu: 4, suspend_timeout_seconds: -1 },
        { project_id: 'test', compute_id: 'ep-test', min_cu: 2, max_cu: 2, suspend_timeout_seconds: 300 },
      ],
    });
    for (const name of ['ebb.yaml', 'baseline.json', 'fleet.json']) expect(textOf(name)).not.toContain(platform.apiKey);
  });

  it('writes the fleet, for commands that then need not read it again', async () => {
    await init([]);
    const before = (await platform.requests()).length;
    const validate = startEbb(['validate', '--matches', '--fleet', 'fleet.json'], { cwd: folder.path, env: {} });
    expect([await validate.ended, validate.lines.at(-1)]).toEqual([0, expect.stringContaining('no problems')]);
    expect(JSON.parse(textOf('fleet.json'))).toMatchObject({
      projects: [
        { id: 'docs', computes: [{ id: 'ep-docs', branch: { default: true } }] },
        { id: 'shop' },
        { id: 'test' },
      ],
    });
    expect((await platform.requests()).length).toBe(before);
  });

  it('writes the plan that the usage of the account tells', () => {
    const read = readSettings({ env: { EBB_API_URL: platform.url, EBB_API_KEY: platform.apiKey }, cwd: folder.path });
    if (!read.ok) throw new Error(read.problems.join());
    writeFileSync(join(folder.path, 'ebb.yaml'), settingsFile(read.settings, { cwd: folder.path, plan: 'launch' }));
    expect(readSettings({ env: {}, cwd: folder.path })).toMatchObject({
      settings: { accounts: [{ plan: 'launch' }] },
    });
  });

  it('names for editors schemas that lie beside, so that the files mean the same on every machine', async () => {
    await init([]);
    const named = ['policies/office-hours.yaml', 'ebb.yaml'].map((name) => {
      const [, schema = ''] = /^# yaml-language-server: \$schema=(.*)$/m.exec(textOf(name)) ?? [];
      expect(
        new Ajv({ strict: false }).compile(JSON.parse(textOf(join(dirname(name), schema))))(parse(textOf(name))),
      ).toBe(true);
      return schema;
    });
    expect(named).toEqual(['../schema/policies.schema.json', 'schema/settings.schema.json']);
  });

  it('starts from a policy that is right once it is enabled', async () => {
    await init([]);
    const file = join(folder.path, 'policies/office-hours.yaml');
    writeFileSync(file, textOf('policies/office-hours.yaml').replace('    enabled: false\n', ''));
    expect(await loadPolicySet({ paths: [file], settings: DEFAULT_POLICY_SETTINGS })).toMatchObject({
      ok: true,
      set: { policies: [{}] },
    });
  });

  it('overwrites nothing by itself, and with --force all but policies', async () => {
    writeFileSync(join(folder.path, 'ebb.yaml'), 'mode: enforce\n');
    expect(await init([])).toEqual({
      ...{ status: 1, stdout: '' },
      stderr: 'ebb: ebb.yaml is there already; nothing was done, ebb init --force overwrites it',
    });
    expect(readdirSync(folder.path)).not.toContain('baseline.json');
    mkdirSync(join(folder.path, 'schema'));
    writeFileSync(join(folder.path, 'schema/policies.schema.json'), 'older');
    rmSync(join(folder.path, 'ebb.yaml'));
    await init([]);
    expect(textOf('schema/policies.schema.json')).toBe('older');
    await init(['--force']);
    expect(textOf('schema/policies.schema.json')).not.toBe('older');
    expect(textOf('ebb.yaml')).toContain('mode: observe');
    writeFileSync(join(folder.path, 'policies/office-hours.yaml'), '# mine');
    expect((await init([])).stderr).toContain('ebb.yaml and baseline.json and fleet.json are there already');
    expect(await init(['--force'])).toMatchObject({ status: 0 });
    expect(textOf('policies/office-hours.yaml')).toBe('# mine');
  });

  it('prints what it found and wrote as JSON, and remembers which key serves reading only', async () => {
    const env = { EBB_API_KEY_FILE: '', NEON_API_KEY: platform.apiKey, EBB_MODE: 'enforce' };
    const refused = await init([], { EBB_API_KEY_FILE: 'nowhere' });
    expect(refused.stderr).toBe(
      'ebb: EBB_API_KEY_FILE: the key file ' +
        `${join(folder.path, 'nowhere')} cannot be read (ENOENT); check the path and its permissions`,
    );
    const { status, stdout } = await init(['--json'], env);
    expect(status).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      ...{ api_url: platform.url, mode: 'observe' },
      files: [
        ...['baseline.json', 'fleet.json', 'policies/office-hours.yaml'],
        ...['schema/policies.schema.json', 'schema/settings.schema.json', 'ebb.yaml'],
      ],
      totals: { projects: 3, computes: 3, active: 2, never_suspend: 1, min_cu: 3.25, max_cu: 6.25 },
      computes: [{ compute_id: 'ep-docs' }, { compute_id: 'ep-shop' }, { compute_id: 'ep-test', started_at: null }],
      awake_longest: ['ep-shop', 'ep-docs'],
    });
    expect(textOf('ebb.yaml')).toContain('NEON_API_KEY, which is for reading only: enforce needs EBB_API_KEY');
    expect((await init(['--force'], env)).stdout).toContain(
      'But EBB_MODE says enforce, and overrides ebb.yaml: unset it.',
    );
  });

  it('shows the first rows of a large fleet', async () => {
    const names = Array.from({ length: 25 }, (_, index) => `p-${100 + index}`);
    const large = await startTestPlatform(Object.fromEntries(names.map((name) => [name, {}])));
    try {
      const { stdout } = await init([], { EBB_API_URL: large.url, EBB_API_KEY_FILE: '', EBB_API_KEY: large.apiKey });
      expect(stdout).toContain('and 5 more: ebb snapshot shows them all\n\n25 computes in 25 projects: 0 awake');
      expect(stdout).not.toContain('Awake longest');
      expect(stdout).toContain('ep-p-119');
      expect(stdout).not.toContain('ep-p-120');
    } finally {
      await large.close();
    }
  });
});
