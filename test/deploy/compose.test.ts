import { existsSync, readFileSync } from 'node:fs';
import { DCLinter } from 'dclint';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { emulatorCommand } from '../../src/cli/emulator.ts';
import { runCommand } from '../../src/cli/run.ts';
import { SECRET_VARIABLES, SETTINGS, type SettingDeclaration } from '../../src/settings/declarations.ts';
import { readSettings } from '../../src/settings/settings.ts';
import { bindsOf, composeVariables, readCompose, readEnvFile, serviceOf } from './compose-file.ts';

/** What of dclint's results is looked at. */
interface Linted {
  messages: { line: number; message: string }[];
}

const trying = readEnvFile('deploy/try/try.env');
const compose = readCompose();
const services = Object.entries(compose.services);
const ownVariables = Object.values<SettingDeclaration>(SETTINGS).flatMap(({ variable }) => variable ?? []);

describe('docker-compose.yml', () => {
  it('keeps to the compose specification, and publishes nothing twice or beyond this machine', () => {
    const linter = new DCLinter({
      quiet: false,
      debug: false,
      exclude: [],
      rules: {
        // The emulator runs from the image that ebb is built into.
        'no-build-and-image': 0,
        'require-quotes-in-ports': [2, { quoteType: 'double' }],
        'service-keys-order': 0,
        'services-alphabetical-order': 0,
        'service-dependencies-alphabetical-order': 0,
        'top-level-properties-order': 0,
      },
    });
    const results: Linted[] = linter.lintFiles(['docker-compose.yml'], false);
    const found = results.flatMap(({ messages }) => messages);
    expect(found.map(({ line, message }) => `${line}: ${message}`)).toEqual([]);
  });

  it.each(services)('%s: image pinned, root read-only, no privileges, restarted, published to loopback', (_, one) => {
    expect(one.image).toMatch(/^ebb:local$|:v?\d+\.\d+\.\d+(-\w+)?$/);
    expect(one).toMatchObject({
      read_only: true,
      restart: 'unless-stopped',
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
    });
    expect((one.ports ?? []).filter((port) => !port.startsWith('127.0.0.1:'))).toEqual([]);
    expect(one.healthcheck !== undefined || one.build !== undefined).toBe(true);
  });

  it('names only variables that ebb has, and no secret among them', () => {
    const named = [
      ...services.flatMap(([, { environment = {} }]) => Object.keys(environment)),
      ...composeVariables(),
      ...Object.keys(trying),
      ...Object.keys(readEnvFile('.env.example')),
    ].filter((name) => name.startsWith('EBB_') || name.startsWith('NEON_'));
    expect(named.filter((name) => !ownVariables.includes(name))).toEqual([]);
    expect(named.filter((name) => name in SECRET_VARIABLES)).toEqual([]);
  });

  it('takes every variable of .env.example, and .env.example has every one that it takes', () => {
    expect(Object.keys(readEnvFile('.env.example')).toSorted()).toEqual([...new Set(composeVariables())].toSorted());
  });

  it.each([
    ['ebb', serviceOf(compose, 'ebb').command],
    ['emulator', serviceOf(compose, 'emulator').command],
  ])('gives %s only flags that its command has', (_, [name = '', ...rest]) => {
    const command = [runCommand(), emulatorCommand()].find((one) => one.name() === name);
    const flags = rest.filter((word) => word.startsWith('--'));
    expect(flags.length).toBeGreaterThan(0);
    expect(flags.filter((flag) => !command?.options.some(({ long }) => long === flag))).toEqual([]);
  });

  it('mounts only what is there, and every secret that a service asks for is declared', () => {
    const filled = readCompose(trying);
    const sources = Object.values(filled.services).flatMap((one) => bindsOf(one).map(({ source }) => source));
    const files = Object.values(filled.secrets).map(({ file }) => file);
    expect([...sources, ...files].filter((path) => !existsSync(path))).toEqual([]);
    const asked = services.flatMap(([, { secrets = [] }]) => secrets);
    expect(asked.toSorted()).toEqual(Object.keys(compose.secrets).toSorted());
  });

  it('gives Grafana dashboards and a data source where its provisioning looks for them', () => {
    const targets = bindsOf(serviceOf(compose, 'grafana')).map(({ target }) => target);
    const { providers } = parse(readFileSync('grafana/provisioning/dashboards/ebb.yaml', 'utf8'));
    expect(targets).toEqual(expect.arrayContaining([providers[0].options.path, '/etc/grafana/provisioning']));
    const { datasources } = parse(readFileSync('grafana/provisioning/datasources/prometheus.yaml', 'utf8'));
    expect(datasources[0].url).toBe('http://prometheus:9090');
  });

  it.each([
    ['with a key', {}, 'observe', 'https://console.neon.tech/api/v2'],
    ['to try', trying, 'enforce', 'http://emulator:8099/api/v2'],
  ])('gives settings that ebb accepts: %s', (_, env, mode, apiUrl) => {
    const { environment = {} } = serviceOf(readCompose(env), 'ebb');
    const cwd = env === trying ? 'deploy/try' : 'test';
    expect(readSettings({ env: environment, cwd, flags: { insecure: true } })).toMatchObject({
      ok: true,
      settings: { mode, apiUrl, listen: { host: '0.0.0.0', port: 9464 } },
    });
  });

  it('has the emulator accept the key that ebb is given to try', () => {
    const { command } = serviceOf(compose, 'emulator');
    const key = readFileSync(readCompose(trying).secrets['ebb-api-key']?.file ?? '', 'utf8').trim();
    expect(command[command.indexOf('--api-key') + 1]).toBe(key);
  });
});
