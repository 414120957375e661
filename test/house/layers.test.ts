import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

/** Each breaks one rule of the house: a file, what stands in it, the rule that must complain (or none). */
const CASES: readonly [file: string, text: string, rule: string | undefined][] = [
  ['src/domain/a.ts', "import { x } from '../ports/x.ts';\nexport const y = x;", 'noRestrictedImports'],
  ['src/domain/b.ts', "import { x } from 'node:fs';\nexport const y = x;", 'noRestrictedImports'],
  ['src/domain/c.ts', "import { x } from 'zod';\nexport const y = x;", 'noRestrictedImports'],
  ['src/domain/d.ts', 'export const now = Date.now();', 'noRestrictedGlobals'],
  ['src/domain/e.ts', 'export const wait = setTimeout(() => {}, 1);', 'noRestrictedGlobals'],
  ['src/domain/f.ts', "import { DateTime } from 'luxon';\nexport const y = DateTime;", undefined],
  ['src/policy/a.ts', "import { x } from '../app/x.ts';\nexport const y = x;", 'noRestrictedImports'],
  ['src/ports/a.ts', "import { x } from '../adapters/queue/x.ts';\nexport const y = x;", 'noRestrictedImports'],
  ['src/app/a.ts', "import { x } from '../adapters/store/x.ts';\nexport const y = x;", 'noRestrictedImports'],
  ['src/app/b.ts', "import { x } from '../policy/x.ts';\nexport const y = x;", 'noRestrictedImports'],
  ['src/app/c.ts', 'export const now = new Date();', 'noRestrictedGlobals'],
  [
    'src/app/d.ts',
    "import { x } from '../domain/x.ts';\nimport { z } from '../ports/z.ts';\nexport const y = x + z;",
    undefined,
  ],
  ['src/adapters/queue/a.ts', "import { x } from '../store/x.ts';\nexport const y = x;", 'noRestrictedImports'],
  ['src/adapters/store/a.ts', "import { x } from '../../app/x.ts';\nexport const y = x;", 'noRestrictedImports'],
  ['src/adapters/http/a.ts', "export const page = fetch('http://127.0.0.1/');", 'noRestrictedGlobals'],
  [
    'src/adapters/http/a.tsx',
    "import { x } from '../../app/x.ts';\nexport const y = () => <p>{x}</p>;",
    'noRestrictedImports',
  ],
  ['src/cli/a.ts', "import { x } from '../adapters/queue/x.ts';\nexport const y = x;", 'noRestrictedImports'],
  ['src/cli/b.ts', "import { x } from '../emulator/server.ts';\nexport const y = x;", 'noRestrictedImports'],
  ['src/cli/demo.ts', "import { x } from '../emulator/server.ts';\nexport const y = x;", undefined],
  ['src/compose.ts', "import { x } from './emulator/server.ts';\nexport const y = x;", 'noRestrictedImports'],
  ['src/settings/a.ts', "import { x } from '../adapters/store/x.ts';\nexport const y = x;", 'noRestrictedImports'],
  ['src/emulator/a.ts', "import { x } from '../domain/decide.ts';\nexport const y = x;", 'noRestrictedImports'],
  [
    'src/emulator/b.ts',
    "import { x } from '../adapters/control-api/wire.ts';\nexport const y = x;",
    'noRestrictedImports',
  ],
  ['src/emulator/c.ts', "import { x } from '../domain/compute-units.ts';\nexport const y = x;", undefined],
  ['src/app/env.ts', 'export const key = process.env.EBB_API_KEY;', 'noProcessEnv'],
  ['src/app/any.ts', 'export const x: any = 1;', 'noExplicitAny'],
  ['src/app/long.ts', `export const x = [\n${"  'line',\n".repeat(300)}];`, 'noExcessiveLinesPerFile'],
  [
    'src/app/long-function.ts',
    `export function f(n: number) {\n${'  n.toFixed();\n'.repeat(61)}}`,
    'noExcessiveLinesPerFunction',
  ],
  ['src/app/cycle-a.ts', "import { b } from './cycle-b.ts';\nexport const a = () => b;", 'noImportCycles'],
  ['src/app/cycle-b.ts', "import { a } from './cycle-a.ts';\nexport const b = () => a;", 'noImportCycles'],
];

describe('the rules of the house', () => {
  let folder: string;
  let complaints: Map<string, Set<string>>;

  beforeAll(async () => {
    folder = await realpath(await mkdtemp(join(tmpdir(), 'ebb-house-')));
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

  it.each(CASES)('%s is judged rightly', (file, _text, rule) => {
    const rules = [...(complaints.get(file) ?? [])];
    if (rule === undefined) expect(rules).toEqual([]);
    else expect(rules).toContain(rule);
  });
});

/** The house rules that Biome finds broken, by file. */
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
