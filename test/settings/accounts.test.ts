import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import { readApiKey } from '../../src/settings/api-key.ts';
import { readSettings, type Settings, secretsOf } from '../../src/settings/settings.ts';
import type { Environment } from '../../src/settings/sources.ts';

const cwd = mkdtempSync(join(tmpdir(), 'ebb-accounts-'));
afterAll(() => rmSync(cwd, { recursive: true }));

function read(yaml: string, env: Environment = {}) {
  writeFileSync(join(cwd, 'ebb.yaml'), yaml);
  return readSettings({ env, cwd });
}

function settings(yaml: string, env: Environment = {}): Settings {
  const result = read(yaml, env);
  if (!result.ok) throw new Error(result.problems.join('\n'));
  return result.settings;
}

function problems(yaml: string, env: Environment = {}): string[] {
  const result = read(yaml, env);
  return result.ok ? [] : result.problems;
}

const THREE = `accounts:
  - { name: retail, api_key_env: EBB_API_KEY_RETAIL, organization: org-1 }
  - { name: games, api_key_file: secrets/games }
  - { name: partners, api_keys_folder: /run/partners }
`;

describe('accounts', () => {
  it('have their keys in variables, in files, or in folders, relative to the settings file', () => {
    const { accounts } = settings(THREE, { EBB_API_KEY_RETAIL: 'napi_retail', NEON_API_KEY: 'napi_neon' });
    expect(accounts).toMatchObject([
      { name: 'retail', apiKey: { from: 'variable', variable: 'EBB_API_KEY_RETAIL' }, organization: 'org-1' },
      { name: 'games', apiKey: { from: 'file', file: join(cwd, 'secrets/games') } },
      { name: 'partners', apiKey: { from: 'folder', folder: '/run/partners' } },
    ]);
  });

  it('whose variable is not set say so when the key is needed', () => {
    const [retail] = settings(THREE, { EBB_API_KEY_RETAIL: '' }).accounts;
    const source = retail?.apiKey?.from === 'folder' ? undefined : retail?.apiKey;
    expect(readApiKey(source, 'read')).toEqual({
      ok: false,
      problem: 'EBB_API_KEY_RETAIL: is not set; put the API key there and nothing else',
    });
  });

  it('show no key however they are printed, and list their keys for those who must hide them', () => {
    const all = settings(THREE, { EBB_API_KEY_RETAIL: 'pl4nted' });
    expect(JSON.stringify(all) + inspect(all, { depth: 9, showHidden: true })).not.toContain('pl4nted');
    expect(secretsOf(all)).toEqual(['pl4nted']);
  });

  it('make the group by their names alone, in any order; one account called default is as none', () => {
    const group = (yaml: string) => settings(yaml).group;
    const [a, b] = ['{ name: a, api_key_file: x }', '{ name: b, api_key_file: y }'];
    expect(group(`accounts: [${a}, ${b}]`)).toBe(group(`accounts: [${b}, ${a.replace('x', 'z')}]`));
    expect(group(`accounts: [${a}, ${b}]`)).not.toBe(group(`accounts: [${a}]`));
    expect(group('accounts: [{ name: default, api_key_file: x }]')).toBe(group('mode: observe'));
    // What was stored before must be found again.
    expect(group('mode: observe')).toBe('6a0c00f70ff2');
  });

  it.each<[string, string, Environment, string]>([
    ['none', 'accounts: []\n', {}, 'ebb.yaml:1:1: accounts names no account; leave it out to use EBB_API_KEY'],
    ['no list', 'accounts: retail\n', {}, 'ebb.yaml:1:1: accounts must be a list of accounts'],
    [
      'no entry',
      'accounts:\n  - retail\n',
      {},
      'ebb.yaml:2:5: entry 1 of accounts must be a name and where the key is',
    ],
    ['no name', 'accounts:\n  - api_key_file: x\n', {}, 'ebb.yaml:2:5: name is missing'],
    [
      'a name that globs and paths take for theirs',
      'accounts:\n  - api_key_file: x\n    name: a/*\n',
      {},
      'ebb.yaml:3:5: name must be 1 to 40 letters, digits, "-", "_" or ".", the first a letter or digit',
    ],
    [
      'a name twice',
      'accounts:\n  - { name: a, api_key_file: x }\n  - { name: a, api_key_file: y }\n',
      {},
      'ebb.yaml:3:7: name "a" is there twice',
    ],
    [
      'no key',
      'accounts:\n  - name: a\n',
      {},
      'ebb.yaml:2:5: entry 1 of accounts must say in one way where the key is: api_key_env, api_key_file, api_keys_folder',
    ],
    [
      'two keys',
      'accounts:\n  - name: a\n    api_key_file: x\n    api_keys_folder: y\n',
      {},
      'ebb.yaml:2:5: entry 1 of accounts must say in one way where the key is: api_key_env, api_key_file, api_keys_folder',
    ],
    [
      'another variable of the process',
      'accounts:\n  - { name: a, api_key_env: AWS_SECRET_ACCESS_KEY }\n',
      {},
      'ebb.yaml:2:16: api_key_env must be the name of a variable: EBB_API_KEY, or EBB_API_KEY_ and more capitals',
    ],
    [
      'the variable of a path',
      'accounts:\n  - { name: a, api_key_env: EBB_API_KEY_FILE }\n',
      {},
      'ebb.yaml:2:16: api_key_env names a variable that holds a path: use api_key_file',
    ],
    [
      'a slip',
      'accounts:\n  - { name: a, organisation: o, api_key_file: x }\n',
      {},
      'ebb.yaml:2:16: unknown setting "organisation"; did you mean "organization"?',
    ],
    [
      'a key of the only account beside them',
      'accounts: [{ name: a, api_key_file: x }]\n',
      { EBB_API_KEY: 'k' },
      'EBB_API_KEY: is set, but no entry of accounts (ebb.yaml:1:1) uses it; write api_key_env: EBB_API_KEY there, or unset it',
    ],
    [
      'its file beside them',
      'accounts: [{ name: a, api_key_file: x }]\n',
      { EBB_API_KEY_FILE: 'k' },
      'EBB_API_KEY_FILE: is set beside accounts (ebb.yaml:1:1); write api_key_file in one of them, and remove this',
    ],
    [
      'the setting of its file beside them',
      'api_key_file: k\naccounts: [{ name: a, api_key_file: x }]\n',
      {},
      'ebb.yaml:1:1: api_key_file stands beside accounts (ebb.yaml:2:1); write api_key_file in one of them, and remove this',
    ],
  ])('that are wrong are one line that says where, what, and what to do: %s', (_name, yaml, env, line) => {
    expect(problems(yaml, env)).toEqual([line]);
  });

  it('may use the usual variable for one of them', () => {
    expect(problems('accounts: [{ name: a, api_key_env: EBB_API_KEY }]\n', { EBB_API_KEY: 'k' })).toEqual([]);
  });

  it.each(['api_key', 'api_key_env', 'api_key_file', 'api_keys_folder'])(
    'never show a key that was pasted where it does not belong: %s',
    (setting) => {
      const lines = problems(`accounts: [{ name: a, ${setting}: napi_pl4nted0123456789 }]\n`);
      expect(lines.length).toBeGreaterThan(0);
      expect(lines.join('\n')).not.toContain('pl4nted');
    },
  );
});

describe('the proxy', () => {
  const https = { EBB_API_URL: 'https://api.example/api/v2' };
  const proxyOf = (env: Environment) => settings('mode: observe', env).proxy;

  it('is that of the usual variables, the one in small letters first, for the scheme of the API', () => {
    const env = { HTTPS_PROXY: 'http://big:1', https_proxy: '', HTTP_PROXY: 'http://other:1', NO_PROXY: 'a,b' };
    expect(proxyOf({ ...https, ...env })).toMatchObject({
      shown: 'http://big:1',
      variable: 'HTTPS_PROXY',
      except: 'a,b',
    });
    expect(proxyOf({ ...https, ...env, https_proxy: 'small:2' })).toMatchObject({ shown: 'http://small:2' });
    expect(proxyOf({ ...https, HTTP_PROXY: 'http://other:1' })).toBeUndefined();
  });

  it('is not looked at for an API on this machine', () => {
    const env = { EBB_API_URL: 'http://127.0.0.1:1/api/v2', HTTP_PROXY: 'nonsense://', HTTPS_PROXY: 'http://big:1' };
    expect(proxyOf(env)).toBeUndefined();
  });

  it('hides its password, or a user that stands for one', () => {
    const all = settings('mode: observe', { ...https, HTTPS_PROXY: 'http://me:pl4nt%21ed@proxy.example:3128/' });
    expect(JSON.stringify(all) + inspect(all, { depth: 9, showHidden: true })).not.toContain('pl4nt');
    expect(secretsOf(all)).toEqual(['http://me:pl4nt%21ed@proxy.example:3128/', 'pl4nt%21ed', 'pl4nt!ed']);
    expect(all.proxy?.shown).toBe('http://proxy.example:3128');
    expect(secretsOf(settings('mode: observe', { ...https, HTTPS_PROXY: 'http://t0ken@proxy' }))).toContain('t0ken');
  });

  it.each(['socks5://me:pl4nted@proxy', 'http://me:%pl4nted@proxy', 'http://'])(
    'that cannot be used is told without being shown: %s',
    (url) => {
      expect(problems('mode: observe', { ...https, HTTPS_PROXY: url })).toEqual([
        'HTTPS_PROXY: is not the URL of an http proxy; write for example http://proxy.example:3128, or unset it',
      ]);
    },
  );
});
