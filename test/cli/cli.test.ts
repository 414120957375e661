import { execFileSync, spawn } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, inject, it } from 'vitest';
import { COMMANDS } from '../../src/cli/commands.ts';
import { startEbb } from '../support/ebb-process.ts';

const ROOT = join(import.meta.dirname, '../..');
const folder = mkdtempSync(join(tmpdir(), 'ebb-cli-'));
afterAll(() => rmSync(folder, { recursive: true }));

async function ebb(args: readonly string[], env: Record<string, string> = {}) {
  const process = startEbb(args, { cwd: folder, env });
  const status = await process.ended;
  return { status, stdout: process.lines.join('\n'), stderr: process.stderr().trimEnd() };
}

/** The commands of a help text, in its order. */
const listed = (help: string) => [...help.matchAll(/^ {2}([a-z]+) {2,}\S/gm)].map(([, name]) => name);

describe('ebb', () => {
  it('prints its version', async () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
    const printed = await ebb(['--version']);
    expect(printed).toEqual({ status: 0, stdout: expect.stringContaining(version), stderr: '' });
    // Of what is built from a checkout also the commit.
    expect(printed.stdout.replace(/ \([0-9a-f]{7}\)$/, '')).toBe(version);
  });

  it('is built with a code cache that this Node.js takes', () => {
    const bundle = join(inject('ebbMain'), '../bundle.cjs');
    const check = `const { readFileSync } = require('node:fs');
      const cachedData = readFileSync(process.argv[1] + '.cache');
      const { cachedDataRejected } = new (require('node:vm').Script)(readFileSync(process.argv[1], 'latin1'), { cachedData });
      process.stdout.write(String(cachedDataRejected));`;
    expect(execFileSync(process.execPath, ['-e', check, bundle], { encoding: 'utf8' })).toBe('false');
  });

  it('has no dynamic import, which code from a cache cannot run', () => {
    const bundle = readFileSync(join(inject('ebbMain'), '../bundle.cjs'), 'utf8');
    expect(bundle.match(/[^.\w$"'`]import\([^)]*\)/g)).toBeNull();
  });

  it('has ASCII characters only, since it is read as Latin-1', () => {
    const bundle = readFileSync(join(inject('ebbMain'), '../bundle.cjs'));
    expect(bundle.every((byte) => byte < 0x80)).toBe(true);
  });

  it('runs without its code cache', async () => {
    const copy = join(folder, 'dist/cli');
    cpSync(join(inject('ebbMain'), '..'), copy, { recursive: true, filter: (path) => !path.endsWith('.cache') });
    cpSync(join(ROOT, 'package.json'), join(folder, 'package.json'));
    const printed = execFileSync(process.execPath, [join(copy, 'main.js'), '--version'], { encoding: 'utf8' });
    expect(printed).toMatch(/^\d+\.\d+\.\d+$/m);
  });

  it('prints help with at most 16 commands in four groups, and examples, also without arguments', async () => {
    const [asked, bare] = await Promise.all([ebb(['--help']), ebb([])]);
    expect(asked).toMatchObject({ status: 0, stderr: '' });
    const short = COMMANDS.filter(({ onlyInHelpAll }) => !onlyInHelpAll);
    expect(short.length).toBeLessThanOrEqual(16);
    expect(listed(asked.stdout)).toEqual(short.map(({ name }) => name));
    expect(asked.stdout.match(/^(Try and check|Run|Ask|Intervene):$/gm)).toHaveLength(4);
    expect(asked.stdout).toContain('Examples:');
    expect(asked.stdout).toContain('ebb help all lists all commands');
    expect(bare).toEqual(asked);
  });

  it('lists every command in its group on request', async () => {
    const { stdout } = await ebb(['help', 'all']);
    expect(listed(stdout)).toEqual(COMMANDS.map(({ name }) => name));
  });

  it('loads none of the big parts for help', async () => {
    const tracer = `import { register } from 'node:module';
      register('data:text/javascript,' + encodeURIComponent(\`
        export async function load(url, context, next) { process._rawDebug('LOADED ' + url); return next(url, context); }
      \`));`;
    const child = spawn(
      process.execPath,
      [
        ...['--import', 'tsx', '--import', `data:text/javascript,${encodeURIComponent(tracer)}`],
        ...['src/cli/main.ts', '--help'],
      ],
      { cwd: ROOT, stdio: ['ignore', 'ignore', 'pipe'] },
    );
    let stderr = '';
    for await (const chunk of child.stderr) stderr += chunk;
    const loaded = [...stderr.matchAll(/^LOADED (.*)$/gm)].map(([, url]) => url);
    expect(loaded.filter((url) => url?.includes('/src/cli/main.ts'))).toHaveLength(1);
    expect(
      loaded.filter((url) =>
        /pglite|bullmq|ioredis|hono|pino|undici|src\/(compose|emulator|adapters|policy)/.test(url ?? ''),
      ),
    ).toEqual([]);
  });

  it.each(COMMANDS)('lists $name as the command describes itself, with examples', async ({ name, summary, load }) => {
    const command = await load();
    expect([command.name(), command.description()]).toEqual([name, summary]);
    const help: string[] = [];
    command.configureOutput({ writeOut: (text) => void help.push(text) }).outputHelp();
    expect(help.join('')).toMatch(new RegExp(`^ {2}\\$ .*\\bebb ${name}\\b`, 'm'));
    // An option whose value has no brackets would silently be a switch.
    for (const option of command.options) expect(option.flags).toMatch(/^(-\w, )?--[a-z-]+( [<[][^ ]+[>\]])?$/);
  });
});

describe('a mistake on the command line', () => {
  it.each([
    [['valdate'], "ebb: unknown command 'valdate' (Did you mean validate?); see ebb --help"],
    [
      ['validate', '--formt', 'json'],
      "ebb: unknown option '--formt' (Did you mean --format?); see ebb validate --help",
    ],
    [
      ['validate', '--format', 'xml'],
      /^ebb: option '--format <format>' argument 'xml' is invalid\. Allowed choices are text, json, github; see ebb validate --help$/,
    ],
  ])('is told in one line on stderr, exit 1: %j', async (args, said) => {
    const { status, stdout, stderr } = await ebb(args);
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr).toMatch(said);
    expect(stderr).not.toContain('\n');
  });

  it('is told in the same way below a command', async () => {
    expect(await ebb(['keys', 'create', '--bogus'])).toEqual({
      ...{ status: 1, stdout: '' },
      stderr: "ebb: unknown option '--bogus'; required option '--org <id>' not specified; see ebb keys --help",
    });
    expect((await ebb(['hold', 'ep-x', '--until', '07:17', '--reason', 'x'])).stderr).toBe(
      "ebb: unknown option '--until'; required option '--for <duration>' not specified; see ebb hold --help",
    );
    expect((await ebb(['hold', 'ep-x', '--reason', 'x'])).stderr).toBe(
      "ebb: required option '--for <duration>' not specified; see ebb hold --help",
    );
    const { status, stdout, stderr } = await ebb(['keys']);
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr).toMatch(/^Usage: ebb keys [\s\S]*\nebb: ebb keys: name a command, as above$/);
  });

  it('beside a store that is down is no reason to name another store, but a daemon', async () => {
    const { status, stderr } = await ebb(['holds'], { EBB_QUEUE_URL: 'redis://127.0.0.1:9' });
    expect({ status, stderr }).toEqual({
      status: 1,
      stderr:
        'ebb: cannot use Redis at 127.0.0.1:9: connection refused; see that it runs, and that EBB_QUEUE_URL is right; a running daemon answers with --url http://HOST:PORT',
    });
  });

  it('shows a stack only with --verbose', async () => {
    const { status, stderr } = await ebb(['validate', 'missing.yaml', '--verbose']);
    expect(status).toBe(1);
    expect(stderr).toMatch(/^ebb: missing\.yaml: no such file or folder\n[\s\S]*\n {4}at /);
  });
});

describe('a command by the name that it had in 0.1.0', () => {
  it('runs, with a warning, and is not in the help', async () => {
    const { status, stderr } = await ebb(['thaw', '--url', 'ftp://here']);
    const warning = 'warning: ebb thaw is now called ebb unfreeze';
    expect({ status, stderr }).toEqual({ status: 1, stderr: `${warning}\nebb: --url: write http://HOST:PORT` });
    expect((await ebb(['--help'])).stdout).not.toContain('thaw');
  });
});

describe('ebb schema', () => {
  it.each([
    [[], 'policies'],
    [['policies'], 'policies'],
    [['settings'], 'settings'],
  ])('with %j prints the JSON Schema of %s that the package has', async (args, name) => {
    const { status, stdout } = await ebb(['schema', ...args]);
    expect(status).toBe(0);
    expect(JSON.parse(stdout)).toEqual(JSON.parse(readFileSync(join(ROOT, `schema/${name}.schema.json`), 'utf8')));
    expect(JSON.parse(stdout)).toMatchObject({ $schema: expect.stringContaining('json-schema.org'), type: 'object' });
  });

  it('ends quietly when its reader has gone', async () => {
    const child = spawn(process.execPath, ['--import', 'tsx', 'src/cli/main.ts', 'schema'], {
      cwd: ROOT,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    child.stdout.destroy();
    let stderr = '';
    child.stderr.on('data', (chunk) => {
      stderr += chunk;
    });
    const status = await new Promise((resolve) => child.on('close', resolve));
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  });
});
