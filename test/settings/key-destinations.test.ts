import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { readSettings } from '../../src/settings/settings.ts';
import type { Environment, SettingsFlags } from '../../src/settings/sources.ts';

const folder = mkdtempSync(join(tmpdir(), 'ebb-destinations-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Settings of a checkout whose `ebb.yaml` says this. */
function read(yaml: string, env: Environment, flags: SettingsFlags = {}) {
  writeFileSync(join(folder, 'ebb.yaml'), yaml);
  const result = readSettings({ env, flags, cwd: folder });
  return { problems: result.ok ? [] : result.problems, ...(result.ok && { settings: result.settings }) };
}

const FOREIGN = 'api_url: https://api.example/api/v2\n';
const KEY = { EBB_API_KEY: 'napi_of_this_machine' };
const REFUSED =
  'ebb.yaml:1:1: api_url would send API keys to https://api.example, which a file may not decide: set EBB_API_URL=https://api.example/api/v2, or give --api-url';

describe('an API key of this machine', () => {
  it.each<[string, string, Environment]>([
    ['EBB_API_KEY', FOREIGN, KEY],
    ['EBB_API_KEY_FILE', FOREIGN, { EBB_API_KEY_FILE: '/run/secrets/key' }],
    ['a key file that the file names', `${FOREIGN}api_key_file: /run/secrets/key\n`, {}],
    ['keys of accounts', `${FOREIGN}accounts: [{ name: a, api_key_env: EBB_API_KEY_A }]\n`, { EBB_API_KEY_A: 'k' }],
  ])('does not go to a foreign host because a file says so: %s', (_, yaml, env) => {
    expect(read(yaml, env).problems).toEqual([REFUSED]);
  });

  it.each([
    'http://console.neon.tech/api/v2',
    'https://console.neon.tech:444/api/v2',
    'https://console.neon.tech.example/api/v2',
  ])('does not go where only the name looks like the vendor: %s', (url) => {
    expect(read(`allow_plain_http: true\napi_url: ${url}\n`, KEY).problems).toHaveLength(1);
  });

  it('goes to a foreign host when a variable or a flag says so, and to the vendor and this machine when a file does', () => {
    const EBB_API_URL = 'https://api.example/api/v2';
    expect(read('mode: observe\n', { ...KEY, EBB_API_URL }).problems).toEqual([]);
    expect(read(FOREIGN, { ...KEY, EBB_API_URL }).problems).toEqual([]);
    expect(read(FOREIGN, KEY, { apiUrl: EBB_API_URL }).problems).toEqual([]);
    for (const url of ['https://console.neon.tech/api/v2', 'http://127.0.0.1:8099/api/v2'])
      expect(read(`api_url: ${url}\n`, KEY).problems).toEqual([]);
  });

  it('that lies around for other tools goes to the vendor and this machine only, whatever other settings say', () => {
    const env = { NEON_API_KEY: 'napi_of_other_tools' };
    expect(read(FOREIGN, env).problems).toEqual([
      'NEON_API_KEY: goes to https://console.neon.tech or this machine only, and ebb.yaml:1:1 says https://api.example; set EBB_API_KEY to the key for it',
    ]);
    expect(read('', { ...env, EBB_API_URL: 'https://api.example/api/v2' }).problems).toHaveLength(1);
    expect(read('api_url: http://127.0.0.1:8099/api/v2\n', env).problems).toEqual([]);
  });

  it('is not missed where there is none', () => {
    expect(read(FOREIGN, {}).problems).toEqual([]);
  });
});

describe('a bearer token of this machine', () => {
  const source = (url: string) =>
    `sources: { counts: { from: prometheus, url: "${url}", query: 'c{id="$compute"}', token_env: EBB_PROMETHEUS_TOKEN } }\n`;
  const refused = (yaml: string, env: Environment = {}) =>
    read(yaml, { EBB_PROMETHEUS_TOKEN: 'secret-of-this-machine', ...env }).settings?.knownSources.sources.get('counts')
      ?.refused;

  it('does not go to an origin that only a file names', () => {
    const why =
      'it would send a bearer token to https://metrics.example, which a file may not decide: set EBB_SOURCES_ALLOWED_ORIGINS=https://metrics.example';
    expect(refused(source('https://metrics.example'))).toBe(why);
    const allowed = 'sources_allowed_origins: ["https://metrics.example"]\n';
    expect(refused(`${allowed}${source('https://metrics.example')}`)).toBe(why);
  });

  it('goes where the variable says, and to this machine', () => {
    const env = { EBB_SOURCES_ALLOWED_ORIGINS: 'https://other.example, https://metrics.example' };
    expect(refused(source('https://metrics.example/api'), env)).toBeUndefined();
    expect(refused(source('http://127.0.0.1:9090'))).toBeUndefined();
  });
});
