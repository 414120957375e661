import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DEFAULT_POLICY_SETTINGS, loadPolicySet } from '../../src/policy/load.ts';
import { formatProblem } from '../../src/policy/problem.ts';
import { valid } from './policy-text.ts';

let cwd = '';

beforeEach(async () => {
  cwd = await mkdtemp(join(tmpdir(), 'ebb-policies-'));
});

afterEach(async () => {
  await rm(cwd, { recursive: true });
});

async function write(path: string, content: string | Buffer = valid('office-hours', path.replaceAll(/\W/g, '-'))) {
  await mkdir(dirname(join(cwd, path)), { recursive: true });
  await writeFile(join(cwd, path), content);
}

/** The files of the policies, in their order; or the problems. */
async function load(...paths: string[]): Promise<string[]> {
  const result = await loadPolicySet({ paths, cwd, settings: DEFAULT_POLICY_SETTINGS });
  return result.ok
    ? result.set.policies.map((policy) => policy.file)
    : result.problems.map((problem) => formatProblem(problem));
}

describe('paths of policies', () => {
  it('are files, folders with everything below them, and globs; each file counts once', async () => {
    for (const path of ['p/b.yml', 'p/a.yaml', 'p/sub/c.yaml', 'p/readme.md', 'q/d.yaml', 'q/e.txt']) await write(path);
    expect(await load('p')).toEqual(['p/a.yaml', 'p/b.yml', 'p/sub/c.yaml']);
    expect(await load('q/*.yaml', 'p/a.yaml', './p/a.yaml', 'p')).toEqual([
      'p/a.yaml',
      'p/b.yml',
      'p/sub/c.yaml',
      'q/d.yaml',
    ]);
    expect(await load(join(cwd, 'p/a.yaml'))).toEqual(['p/a.yaml']);
  });

  it('outside the working folder are shown in full', async () => {
    await write('p/a.yaml');
    await mkdir(join(cwd, 'elsewhere'));
    const result = await loadPolicySet({
      paths: ['../p'],
      cwd: join(cwd, 'elsewhere'),
      settings: DEFAULT_POLICY_SETTINGS,
    });
    expect(result.ok && result.set.policies[0]?.file).toBe(join(cwd, 'p/a.yaml'));
  });

  it('follow links to files, and leave hidden folders out as a mounted volume has them', async () => {
    await write('p/..2026/a.yaml');
    await symlink('..2026/a.yaml', join(cwd, 'p/a.yaml'));
    await symlink('..2026', join(cwd, 'p/..data'));
    expect(await load('p')).toEqual(['p/a.yaml']);
  });

  it('that mean no file are problems, together with those of the files', async () => {
    await write('p/notes.md');
    await write('bad.yaml', 'version: 1\n');
    expect(await load('nowhere', 'p', 'x/*.yaml', 'bad.yaml')).toEqual([
      'nowhere: no such file or folder',
      'p: no *.yaml or *.yml in this folder',
      'x/*.yaml: matches no file',
      'bad.yaml:1:1: missing key "policies"; expected a list of policies\n  1 | version: 1\n    | ^^^^^^^',
    ]);
  });
});

describe('a file', () => {
  it('that is too large is refused without being parsed', async () => {
    await write('big.yaml', Buffer.alloc(100 * 1024 * 1024, '[').subarray());
    expect(await load('big.yaml')).toEqual(['big.yaml: larger than 512 KiB']);
  });

  it('that is not UTF-8 is refused', async () => {
    await write('latin.yaml', Buffer.from([0x61, 0xe4]));
    expect(await load('latin.yaml')).toEqual(['latin.yaml: cannot be read (not UTF-8)']);
  });

  it('with a byte order mark and Windows line ends is read', async () => {
    await write('windows.yaml', `\uFEFF${valid().replaceAll('\n', '\r\n')}`);
    expect(await load('windows.yaml')).toEqual(['windows.yaml']);
    await write('windows.yaml', `\uFEFF${valid('1-4', '3.5').replaceAll('\n', '\r\n')}`);
    expect(await load('windows.yaml')).toEqual([
      'windows.yaml:10:15: 3.5 CU is not a size; the nearest are 3 and 4\n  10 |         size: 3.5\n     |               ^^^',
    ]);
  });

  it('that is no file is refused', async () => {
    expect(await load('/dev/null')).toEqual(['/dev/null: not a file']);
  });
});
