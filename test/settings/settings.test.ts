import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import { type KeyPurpose, readApiKey } from '../../src/settings/api-key.ts';
import { readSettings, type Settings, secretsOf } from '../../src/settings/settings.ts';
import type { Environment, SettingsFlags } from '../../src/settings/sources.ts';

const folders: string[] = [];

afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true });
});

/** A folder of its own with these files in it. */
function folderWith(files: Record<string, string> = {}): string {
  const folder = mkdtempSync(join(tmpdir(), 'ebb-settings-'));
  folders.push(folder);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return folder;
}

interface Sources {
  yaml?: string;
  env?: Environment;
  flags?: SettingsFlags;
}

function read({ yaml, env = {}, flags = {} }: Sources) {
  return readSettings({ flags, env, cwd: folderWith(yaml === undefined ? {} : { 'ebb.yaml': yaml }) });
}

function settings(sources: Sources): Settings {
  const result = read(sources);
  if (!result.ok) throw new Error(result.problems.join('\n'));
  return result.settings;
}

/** The key of the only account. */
function keyOf({ accounts }: Settings, purpose: KeyPurpose) {
  const [only] = accounts;
  if (accounts.length !== 1 || only?.apiKey?.from === 'folder') throw new Error('not one account with one key');
  return readApiKey(only?.apiKey, purpose);
}

function problems(sources: Sources): string[] {
  const result = read(sources);
  return result.ok ? [] : result.problems;
}

describe('settings', () => {
  it('are safe when nothing is set: observe, loopback, an embedded queue in the working folder', () => {
    const cwd = folderWith();
    const result = readSettings({ env: {}, cwd });
    expect(result).toMatchObject({
      ok: true,
      settings: {
        mode: 'observe',
        apiUrl: 'https://console.neon.tech/api/v2',
        accounts: [{ name: 'default', apiKey: undefined }],
        policies: ['policies'],
        listen: { host: '127.0.0.1', port: 9464 },
        logLevel: 'info',
        perComputeMetrics: true,
        insecure: false,
        queue: { kind: 'embedded', shown: 'embedded:.ebb' },
      },
    });
    expect(result.ok && result.settings.queue.url.reveal()).toBe(`embedded:${join(cwd, '.ebb')}`);
  });

  it('take the flag over the variable over the file, and an empty variable as not set', () => {
    const yaml = 'mode: observe\nlisten: 127.0.0.1:1\nlog_level: warn\npolicies: [a, b]\n';
    const env = { EBB_MODE: 'enforce', EBB_LISTEN: '127.0.0.1:2', EBB_LOG_LEVEL: '' };
    expect(settings({ yaml, env, flags: { listen: '[::1]:3' } })).toMatchObject({
      mode: 'enforce',
      listen: { host: '::1', port: 3 },
      logLevel: 'warn',
      policies: ['a', 'b'],
    });
  });

  it('makes teams the owners of their projects, after what owners says', () => {
    const yaml = 'teams: { team-web: { policies: web, projects: ["web-*", "!web-x"] } }\nowners: { web-lab: ann }\n';
    expect(settings({ yaml }).owners).toEqual([
      ['web-lab', 'ann'],
      [['web-*', '!web-x'], 'team-web'],
    ]);
  });

  it('split policy paths at commas and path separators, not inside braces', () => {
    expect(settings({ env: { EBB_POLICIES: 'a.yaml, teams/*.yaml:x/{b,c}.yaml' } }).policies).toEqual([
      'a.yaml',
      'teams/*.yaml',
      'x/{b,c}.yaml',
    ]);
    expect(settings({ flags: { policies: ['a,b', 'c'] } }).policies).toEqual(['a', 'b', 'c']);
  });

  it('take paths in a file of another folder as relative to that file', () => {
    const elsewhere = folderWith({
      'ops.yaml': 'policies: rules\nqueue_url: embedded:state\napi_key_file: key\naudit: { file: log/audit.jsonl }\n',
      key: 'k-1\n',
    });
    const result = readSettings({ env: {}, cwd: folderWith(), configFile: join(elsewhere, 'ops.yaml') });
    if (!result.ok) throw new Error(result.problems.join('\n'));
    expect(result.settings.policies).toEqual([join(elsewhere, 'rules')]);
    expect(result.settings.audit).toEqual({ file: join(elsewhere, 'log/audit.jsonl') });
    expect(result.settings.queue.url.reveal()).toBe(`embedded:${join(elsewhere, 'state')}`);
    const key = keyOf(result.settings, 'write');
    expect(key.ok && key.value.reveal()).toBe('k-1');
  });

  it('derive the group from the API URL alone, so that a rotated key keeps what is stored', () => {
    const group = (url: string, key: string) => settings({ env: { EBB_API_URL: url, EBB_API_KEY: key } }).group;
    expect(group('https://a.example/api/v2', 'one')).toBe(group('https://a.example/api/v2/', 'two'));
    expect(group('https://a.example/api/v2', 'one')).not.toBe(group('https://b.example/api/v2', 'one'));
    expect(settings({ env: { EBB_GROUP: 'team_a' } }).group).toBe('team_a');
  });
});

describe('each wrong setting', () => {
  it.each<[string, Sources, string]>([
    [
      'an unknown key',
      { yaml: 'mode: observe\npolcies: x\n' },
      'ebb.yaml:2:1: unknown setting "polcies"; did you mean "policies"?',
    ],
    [
      'a key that resembles nothing',
      { yaml: 'colour: red\n' },
      'ebb.yaml:1:1: unknown setting "colour"; see docs/settings.md',
    ],
    [
      'an audit without a file',
      { yaml: 'audit: /var/log/audit.jsonl\n' },
      'ebb.yaml:1:1: audit must be a mapping such as {file: /var/log/ebb/audit.jsonl}',
    ],
    ['a key twice', { yaml: 'mode: observe\nmode: enforce\n' }, 'ebb.yaml:2:1: Map keys must be unique'],
    ['a file that is no map', { yaml: '- a\n' }, 'ebb.yaml:1:1: must be a list of settings, one "name: value" a line'],
    [
      'a mode that is none',
      { yaml: 'mode: enforec\n' },
      'ebb.yaml:1:1: mode "enforec" is not known; use observe or enforce',
    ],
    ['the same in a variable', { env: { EBB_MODE: 'yes' } }, 'EBB_MODE: "yes" is not known; use observe or enforce'],
    ['the same in a flag', { flags: { mode: 'on' } }, '--mode: "on" is not known; use observe or enforce'],
    ['a number for text', { yaml: 'api_url: 5\n' }, 'ebb.yaml:1:1: api_url must be text'],
    [
      'an address without port',
      { flags: { listen: '127.0.0.1' } },
      '--listen: "127.0.0.1" is not HOST:PORT; write for example 127.0.0.1:9464 or 0.0.0.0:9464',
    ],
    [
      'a port out of range',
      { env: { EBB_LISTEN: '127.0.0.1:70000' } },
      'EBB_LISTEN: "127.0.0.1:70000" is not HOST:PORT; write for example 127.0.0.1:9464 or 0.0.0.0:9464',
    ],
    [
      'an API URL without version',
      { flags: { apiUrl: 'https://console.neon.tech' } },
      '--api-url: "https://console.neon.tech" must end in /api/v2; write for example https://console.neon.tech/api/v2',
    ],
    [
      'plain http to another machine',
      { env: { EBB_API_URL: 'http://api.example/api/v2' } },
      'EBB_API_URL: http would send the API key unencrypted; use https, or set allow_plain_http: true in ebb.yaml',
    ],
    [
      'an unknown queue',
      { flags: { queueUrl: 'mysql://host' } },
      '--queue-url: doesn\'t know the scheme "mysql"; write embedded:DIR, redis://HOST:PORT, rediss://HOST:PORT or postgres://HOST/DATABASE',
    ],
    [
      'a group that no schema can be named after',
      { env: { EBB_GROUP: 'Team A' } },
      'EBB_GROUP: must be 1 to 40 lower-case letters, digits, "-" or "_", the first a letter or digit',
    ],
    ['no policies', { yaml: 'policies: []\n' }, 'ebb.yaml:1:1: policies names no path; write a file, folder or glob'],
    [
      'two keys',
      { env: { EBB_API_KEY: 'a', EBB_API_KEY_FILE: 'b' } },
      'EBB_API_KEY, EBB_API_KEY_FILE: both are set; unset one of them',
    ],
    [
      'a short token',
      { env: { EBB_TOKEN: 'short' } },
      'EBB_TOKEN: must be at least 16 letters, digits, or any of -._~+/ (= only at the end); make one with: openssl rand -hex 32',
    ],
  ])('is one line that says where, what, and what to do: %s', (_name, sources, line) => {
    expect(problems(sources)).toEqual([line]);
  });

  it('is told together with the others', () => {
    expect(problems({ yaml: 'mode: x\nlog_level: y\nlistn: z\n' })).toHaveLength(3);
  });

  it.each<[string, string, RegExp[]]>([
    [
      'a wrong mode',
      'mode: enforec\napi_url: http://api.example/api/v2\n',
      [/^ebb.yaml:1:1: mode/, /^ebb.yaml:2:1: http would/],
    ],
    [
      'a receiver elsewhere',
      'mode: enforec\nnotify: { dev: { to: webhook, url: "https://hooks.example", secret_env: EBB_NOTIFY_SECRET } }\n',
      [/mode/, /the receiver dev: https:\/\/hooks.example is not allowed/],
    ],
    [
      'plain http that is allowed, but not validly',
      'allow_plain_http: "yes"\napi_url: http://api.example/api/v2\n',
      [/true or false/],
    ],
    [
      'plain http that a misspelt key allows',
      'allow_plain_htp: true\napi_url: http://api.example/api/v2\n',
      [/unknown setting/],
    ],
    [
      'origins that are not valid',
      'notify_allowed_origins: [x]\nnotify: { dev: { to: webhook, url: "https://hooks.example", secret_env: EBB_NOTIFY_SECRET } }\n',
      [/an origin/],
    ],
  ])('does not hide wrong combinations, unless they are its consequence: %s', (_name, yaml, lines) => {
    expect(problems({ yaml })).toEqual(lines.map((line) => expect.stringMatching(line)));
  });

  it('names a configuration file that is not there', () => {
    const result = readSettings({ env: {}, cwd: folderWith(), configFile: 'gone.yaml' });
    expect(result).toEqual({
      ok: false,
      problems: ['gone.yaml: cannot be read (ENOENT); check the path and its permissions'],
    });
  });

  it('allows plain http to this machine, and elsewhere when the file says so', () => {
    expect(settings({ env: { EBB_API_URL: 'http://127.0.0.1:8080/api/v2' } }).apiUrl).toBe(
      'http://127.0.0.1:8080/api/v2',
    );
    expect(problems({ yaml: 'allow_plain_http: true\napi_url: http://api.example/api/v2\n' })).toEqual([]);
    expect(problems({ env: { EBB_API_URL: 'http://127.0.0.1.example.com/api/v2' } })).toHaveLength(1);
  });
});

describe('the API key', () => {
  it('is not demanded before something needs it', () => {
    const none = keyOf(settings({}), 'read');
    expect(none).toEqual({
      ok: false,
      problem:
        'no API key: set EBB_API_KEY, or EBB_API_KEY_FILE to a file that holds it; to read only, NEON_API_KEY is enough',
    });
  });

  it('of NEON_API_KEY is named only where it would do', () => {
    const none = keyOf(settings({}), 'write');
    expect(none).toEqual({ ok: false, problem: expect.stringMatching(/^no API key: set EBB_API_KEY, or/) });
    expect(none).not.toEqual({ ok: false, problem: expect.stringContaining('NEON_API_KEY') });
  });

  it('from NEON_API_KEY serves reading, never writing, and yields to the others', () => {
    const neon = settings({ env: { NEON_API_KEY: 'napi_neon' } });
    const forReading = keyOf(neon, 'read');
    expect(forReading.ok && forReading.value.reveal()).toBe('napi_neon');
    expect(keyOf(neon, 'write')).toMatchObject({
      ok: false,
      problem: expect.stringMatching(/NEON_API_KEY is used for reading only.*EBB_API_KEY/),
    });
    const both = keyOf(settings({ env: { NEON_API_KEY: 'napi_neon', EBB_API_KEY: 'napi_ebb' } }), 'write');
    expect(both.ok && both.value.reveal()).toBe('napi_ebb');
  });

  it('is read from its file each time, so that it can be rotated', () => {
    const file = join(folderWith({ key: 'first\n' }), 'key');
    const fromFile = settings({ env: { EBB_API_KEY_FILE: file } });
    const first = keyOf(fromFile, 'write');
    writeFileSync(file, 'second\n');
    const second = keyOf(fromFile, 'write');
    expect([first, second].map((key) => key.ok && key.value.reveal())).toEqual(['first', 'second']);
    rmSync(file);
    expect(keyOf(fromFile, 'write')).toEqual({
      ok: false,
      problem: `EBB_API_KEY_FILE: the key file ${file} cannot be read (ENOENT); check the path and its permissions`,
    });
  });

  it.each(['', 'two words', 'line\nbreak', 'smörgås'])(
    'is refused, and not shown, when no key looks like it: %j',
    (text) => {
      const file = join(folderWith({ key: text }), 'key');
      const key = keyOf(settings({ env: { EBB_API_KEY_FILE: file } }), 'read');
      expect(key).toMatchObject({ ok: false, problem: expect.stringContaining('EBB_API_KEY_FILE') });
      if (text !== '') expect(JSON.stringify(key)).not.toContain(text);
    },
  );
});

describe('secrets', () => {
  const password = 'pl4nted/p@ss';
  const withPassword = `redis://user:${password}@redis.example:6379/0`;

  it('never stand in argv or in a file: a queue URL with a password is refused there without being shown', () => {
    const fromFlag = problems({ flags: { queueUrl: withPassword } });
    expect(fromFlag).toEqual([
      '--queue-url: a password has no place in the command line, where other users see it; set EBB_QUEUE_URL instead',
    ]);
    const fromFile = problems({ yaml: `queue_url: "${withPassword}"\n` });
    expect(fromFile).toEqual([
      'ebb.yaml:1:1: a password has no place in a file that others read; set EBB_QUEUE_URL instead',
    ]);
    const apiUrl = problems({ flags: { apiUrl: 'https://user:pl4nted@api.example/api/v2' } });
    expect(apiUrl).toEqual([
      '--api-url: must not hold a user or password; the key comes from EBB_API_KEY or EBB_API_KEY_FILE',
    ]);
    expect(problems({ yaml: 'api_key: pl4nted\n' })).toEqual([
      'ebb.yaml:1:1: api_key: a key has no place in a file that others read: set EBB_API_KEY, or api_key_file',
    ]);
  });

  it('stay unseen however the settings are printed, and are listed for those who must hide them', () => {
    const all = settings({
      env: { EBB_API_KEY: 'pl4nted-key', EBB_TOKEN: 'pl4nted-token-0123456789', EBB_QUEUE_URL: withPassword },
    });
    const printed = [
      JSON.stringify(all),
      inspect(all, { depth: 9, showHidden: true }),
      `${all.queue.url} ${all.token}`,
      all.queue.shown,
    ];
    // The list of passwords is what the redaction of the log is fed from; nothing else shows any.
    for (const text of printed) expect(text).not.toContain('pl4nted');
    expect(all.queue.shown).toBe('redis://redis.example:6379/0');
    expect(secretsOf(all)).toEqual(['pl4nted-key', withPassword, password, 'pl4nted-token-0123456789']);
  });

  it('are found in parameters of the queue URL, as written and as decoded', () => {
    const { queue } = settings({
      env: { EBB_QUEUE_URL: 'postgres://db.example/ebb?password=pl4nted%21&sslmode=require' },
    });
    expect(queue.passwords.map((one) => one.reveal())).toEqual(['pl4nted%21', 'pl4nted!']);
    expect(queue.shown).toBe('postgres://db.example/ebb?password=[redacted]&sslmode=require');
  });
});
