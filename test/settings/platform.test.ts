import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { readSettings, type Settings } from '../../src/settings/settings.ts';

const cwd = mkdtempSync(join(tmpdir(), 'ebb-platform-'));
afterAll(() => rmSync(cwd, { recursive: true }));

function read(yaml: string) {
  writeFileSync(join(cwd, 'ebb.yaml'), yaml);
  return readSettings({ env: {}, cwd });
}

function settings(yaml: string): Settings {
  const result = read(yaml);
  if (!result.ok) throw new Error(result.problems.join('\n'));
  return result.settings;
}

const HALF = { minCu: 0.5, maxCu: 8 };

describe('plans, prices and profiles', () => {
  it('have defaults: no plan, the prices of the vendor, the connections of the specification', () => {
    const { accounts, prices, disruption, manualChanges } = settings('mode: observe\n');
    expect(accounts).toMatchObject([{ name: 'default', profile: { name: 'specification', reserved: 0 } }]);
    expect(accounts[0]?.plan).toBeUndefined();
    expect(prices).toEqual({ free: 0, launch: 0.106, scale: 0.222 });
    expect({ disruption, manualChanges }).toEqual({ disruption: {}, manualChanges: undefined });
  });

  it('are those of the account, else those for all', () => {
    const { accounts, prices } = settings(`
plan: launch
profile: vendor-2026
prices: { scale: 0.26 }
accounts:
  - { name: a, api_key_file: x }
  - { name: b, api_key_file: y, plan: scale, profile: { max_connections: { 1: 400, 0.25: 100 }, reserved: 10 } }
`);
    expect(accounts).toMatchObject([
      { plan: 'launch', profile: { name: 'vendor-2026', reserved: 7 } },
      { plan: 'scale', profile: { name: 'table', reserved: 10 } },
    ]);
    expect(accounts.map(({ profile }) => profile.maxConnections(HALF))).toEqual([1678, 400]);
    expect(prices).toEqual({ free: 0, launch: 0.106, scale: 0.26 });
  });
});

describe('what ebb verify has found', () => {
  it('is of the account, else of all; without it everything is assumed', () => {
    expect(settings('mode: observe\n').accounts).toMatchObject([{ verified: {} }]);
    const { accounts } = settings(`
verified: { timeout_change: restarts }
accounts:
  - { name: a, api_key_file: x }
  - { name: b, api_key_file: y, verified: { idle_resize: stays } }
`);
    expect(accounts.map(({ verified }) => verified)).toEqual([
      { timeout_change: 'restarts' },
      { idle_resize: 'stays', timeout_change: 'restarts' },
    ]);
  });

  it.each([
    ['verified: { timeout_change: sometimes }', /^ebb\.yaml:1:13: .*"sometimes" is not known; use stays or restarts/],
    ['verified: { sleep: stays }', /^ebb\.yaml:1:13: .*sleep/],
    ['verified: yes', /^ebb\.yaml:1:1: .*must be what ebb verify has found/],
  ])('is refused with its place: %s', (yaml, problem) => {
    expect(read(yaml)).toMatchObject({ ok: false, problems: [expect.stringMatching(problem)] });
  });
});

describe('profiles by the names of 0.1.0', () => {
  it('are accepted, with a warning for each name', () => {
    const result = read(
      'profile: seed\naccounts: [{ name: a, api_key_file: x, profile: current }, { name: b, api_key_file: y }]\n',
    );
    expect(result).toMatchObject({
      ok: true,
      settings: { accounts: [{ profile: { name: 'vendor-2026' } }, { profile: { name: 'specification' } }] },
      warnings: [
        'the profile seed is now called specification: change it in the settings',
        'the profile current is now called vendor-2026: change it in the settings',
      ],
    });
  });

  it('are warned of only where they are used', () => {
    expect(read('profile: specification\n')).toMatchObject({ ok: true, warnings: [] });
  });
});

describe('disruption and manual_changes', () => {
  it('are read as in a policy', () => {
    const { disruption, manualChanges } = settings(`
disruption: { lower: { when: quiet, deadline: 1h30m }, cooldown: 5m, at_once: 20% }
manual_changes: { respect_for: 2h }
`);
    expect(disruption).toEqual({
      lower: { when: 'quiet', deadlineMs: 5_400_000, atDeadline: 'apply' },
      cooldownMs: 300_000,
      atOnce: 0.2,
    });
    expect(manualChanges).toEqual({ kind: 'respect-for', forMs: 7_200_000 });
  });
});

describe('what is wrong with them is one line that says where, what, and what to do', () => {
  it.each([
    ['plan: pro\n', 'ebb.yaml:1:1: plan "pro" is not known; use free, launch or scale'],
    ['prices: { lanch: 1 }\n', 'ebb.yaml:1:11: unknown setting "lanch"; did you mean "launch"?'],
    ['prices: { free: -1 }\n', 'ebb.yaml:1:11: free must be US dollars for a CU-hour, such as 0.106'],
    [
      'profile: old\n',
      'ebb.yaml:1:1: profile must be specification, vendor-2026, or {max_connections: {1: 450, …}, reserved: 0}',
    ],
    ['profile: { max_connections: {} }\n', 'ebb.yaml:1:12: max_connections must have at least one size'],
    ['profile: { max_connections: { 17: 9 } }\n', 'ebb.yaml:1:31: 17 is not a size in CU; the nearest are 16 and 18'],
    ['profile: { max_connections: { 57: 9 } }\n', 'ebb.yaml:1:31: 57 is not a size in CU; the nearest is 56'],
    ['profile: { max_connections: { big: 9 } }\n', 'ebb.yaml:1:31: big is not a size in CU'],
    ['profile: { max_connections: { 1: many } }\n', 'ebb.yaml:1:31: 1 must be a whole number of connections'],
    [
      'profile:\n  max_connections: { 1: 450 }\n  reservd: 7\n',
      'ebb.yaml:3:3: unknown setting "reservd"; did you mean "reserved"?',
    ],
    [
      'disruption:\n  cooldown: 2d\n',
      'ebb.yaml:2:3: cooldown: expected a duration of 0s to 1d, such as "90s", "5m", "1h30m"',
    ],
    ['disruption: { cooldwn: 1m }\n', 'ebb.yaml:1:15: unknown key "cooldwn"; did you mean "cooldown"?'],
    [
      'disruption: { lower: { when: ilde } }\n',
      'ebb.yaml:1:24: when: expected any or idle or quiet; did you mean "idle"?',
    ],
    ['manual_changes: keep\n', 'ebb.yaml:1:1: manual_changes: expected respect, revert, or {respect_for: 2h}'],
    [
      'manual_changes: { respect_for: 1s }\n',
      'ebb.yaml:1:19: respect_for: expected a duration of 1m to 30d, such as "90s", "5m", "1h30m"',
    ],
  ])('%s', (yaml, line) => {
    const result = read(yaml);
    expect(result.ok ? [] : result.problems).toEqual([line]);
  });
});
