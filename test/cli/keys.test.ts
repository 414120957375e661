import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { compute, startTestEmulator, type TestEmulator } from '../emulator/support.ts';
import { startEbb } from '../support/ebb-process.ts';

let folder: string;
let platform: TestEmulator;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'ebb-keys-'));
  const project = { id: 'shop', name: 'shop', account: 'red', regionId: 'aws-eu-central-1', pgVersion: 17 };
  platform = await startTestEmulator({ fleet: { projects: [{ ...project, computes: [compute({ id: 'ep-1' })] }] } });
});

afterEach(async () => {
  await platform.emulator.close();
  rmSync(folder, { recursive: true });
});

async function create(flags: readonly string[], env: Record<string, string> = {}) {
  const { url, apiKey } = platform.emulator;
  const wanted = ['--org', 'org-red', '--project', 'shop', '--name', 'ebb'];
  const own = { EBB_API_URL: url, EBB_API_KEY: apiKey };
  const process = startEbb(['keys', 'create', ...wanted, ...flags], { cwd: folder, env: { ...own, ...env } });
  const status = await process.ended;
  return { status, stdout: process.lines.join('\n'), stderr: process.stderr().trimEnd() };
}

async function projectsOf(key: string): Promise<string[]> {
  const { body } = await platform.call('GET', '/projects', undefined, { authorization: `Bearer ${key}` });
  return body.projects.map((project: { id: string }) => project.id);
}

describe('ebb keys create', () => {
  it('prints the key alone on standard output, once, and it opens its project', async () => {
    const { status, stdout, stderr } = await create([]);
    expect(status).toBe(0);
    expect(stdout).toMatch(/^napi_[a-z0-9]{64}$/);
    expect(stderr).toMatch(/^made key \d+ \(ebb\) for project shop; it is not shown again$/);
    expect(await projectsOf(stdout)).toEqual(['shop']);
  });

  it('writes the key into a new file that only its owner can read, and shows it nowhere', async () => {
    const { status, stdout, stderr } = await create(['--out', 'shop.key', '--json']);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    const file = join(folder, 'shop.key');
    const key = readFileSync(file, 'utf8').trim();
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(JSON.parse(stdout)).toMatchObject({ name: 'ebb', project_id: 'shop', file: 'shop.key' });
    expect(stdout).not.toContain(key);
    expect(await projectsOf(key)).toEqual(['shop']);
  });

  it('makes no key where its file cannot be made, and leaves no file where there is no key', async () => {
    const before = (await platform.control('GET', '/keys')).body.keys.length;
    const locked = await create(['--out', '/dev/null']);
    expect(locked).toMatchObject({ status: 1, stdout: '', stderr: expect.stringContaining('is there already') });
    const lost = await create(['--out', 'no/such/folder/key']);
    expect(lost).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('(ENOENT): check the path; no key was made'),
    });
    const refused = await create(['--out', 'refused.key', '--project', 'nowhere']);
    expect(refused).toMatchObject({ status: 1, stderr: expect.stringContaining('check --org and --project') });
    expect(() => statSync(join(folder, 'refused.key'))).toThrow('ENOENT');
    expect((await platform.control('GET', '/keys')).body.keys).toHaveLength(before);
  });

  it('asks which of several accounts makes the key', async () => {
    const settings = `accounts:
  - { name: red, api_key_env: EBB_API_KEY_RED }
  - { name: scoped, api_keys_folder: keys }
`;
    writeFileSync(join(folder, 'several.yaml'), settings);
    const by = (account: string[]) =>
      create(['--config', 'several.yaml', ...account], { EBB_API_KEY: '', EBB_API_KEY_RED: platform.emulator.apiKey });
    expect((await by([])).stderr).toBe(
      'ebb: there are several accounts: say with --account which one makes the key (red, scoped)',
    );
    expect((await by(['--account', 'blue'])).stderr).toBe('ebb: there is no account blue: use one of red, scoped');
    expect((await by(['--account', 'scoped'])).stderr).toMatch(/^ebb: account scoped has .*: use a personal key$/);
    expect(await by(['--account', 'red'])).toMatchObject({ status: 0, stdout: expect.stringMatching(/^napi_/) });
  });

  it('says in one line what is wrong with the key that it uses', async () => {
    const stranger = await create([], { EBB_API_KEY: 'napi_stranger' });
    expect(stranger).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/^ebb: .* refuses the API key: set .*$/),
    });
    const scoped = (await create([])).stdout;
    const narrow = await create([], { EBB_API_KEY: scoped });
    expect(narrow).toMatchObject({ status: 1, stderr: expect.stringMatching(/^ebb: .*use a personal key of .*$/) });
    expect(narrow.stderr).not.toContain(scoped);
  });
});
