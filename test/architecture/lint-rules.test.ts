import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

/** Each breaks one rule of lint: a file, what stands in it, the rule that must complain (or none). */
const CASES: readonly [file: string, text: string, rule: string | undefined][] = [
  ['src/domain/d.ts', 'export const now = Date.now();', 'noRestrictedGlobals'],
  ['src/domain/e.ts', 'export const wait = setTimeout(() => {}, 1);', 'noRestrictedGlobals'],
  ['src/app/c.ts', 'export const now = new Date();', 'noRestrictedGlobals'],
  ['src/ports/a.ts', 'export const wait = setTimeout(() => {}, 1);', 'noRestrictedGlobals'],
  ['src/adapters/http/a.ts', "export const page = fetch('http://127.0.0.1/');", 'noRestrictedGlobals'],
  ['src/compose/a.ts', "export const page = fetch('http://127.0.0.1/');", 'noRestrictedGlobals'],
  ['src/cli/a.ts', 'export const now = Date.now();', undefined],
  ['src/app/env.ts', 'export const key = process.env.EBB_API_KEY;', 'noProcessEnv'],
  ['src/app/any.ts', 'export const x: any = 1;', 'noExplicitAny'],
  ['src/app/long.ts', `export const x = [\n${"  'line',\n".repeat(400)}];`, 'noExcessiveLinesPerFile'],
  [
    'src/app/long-function.ts',
    `export function f(n: number) {\n${'  n.toFixed();\n'.repeat(61)}}`,
    'noExcessiveLinesPerFunction',
  ],
];

describe('lint', () => {
  let folder: string;
  let complaints: Map<string, Set<string>>;

  beforeAll(async () => {
    folder = await realpath(await mkdtemp(join(tmpdir(), 'ebb-architecture-')));
    await cp('package.json', join(folder, 'package.json'));
    const config = JSON.parse(await readFile('biome.json', 'utf8'));
    await writeFile(
      join(folder, 'biome.json'),
      JSON.stringify({ ...config, $schema: undefined, vcs: { enabled: false } }),
    );
    for (const [file, text] of CASES) {
      await mkdir(dirname(join(folder, file)), { recursive: true });
      await writeFile(join(folder, file), `${text}\n`);
    }
    complaints = await lint(folder);
  });

  afterAll(() => rm(folder, { recursive: true, force: true }));

  it.each(CASES)('%s: the rule applies where it should', (file, _text, rule) => {
    const rules = [...(complaints.get(file) ?? [])];
    if (rule === undefined) expect(rules).toEqual([]);
    else expect(rules).toContain(rule);
  });
});

/** The rules that Biome finds broken, by file. */
async function lint(folder: string): Promise<Map<string, Set<string>>> {
  const biome = join(process.cwd(), 'node_modules/@biomejs/biome/bin/biome');
  const args = [biome, 'lint', '--reporter=github', '--max-diagnostics=none', 'src'];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: folder }).catch((error) => error);
  const found = new Map<string, Set<string>>();
  for (const [, rule, file] of String(stdout).matchAll(/title=lint\/\w+\/(\w+),file=([^,]+),/g)) {
    if (!file || !rule || rule.startsWith('noUn')) continue;
    const path = relative(folder, file);
    found.set(path, (found.get(path) ?? new Set()).add(rule));
  }
  return found;
}
