/** The guide for a new policy kind works as written: its blocks make the kind in a copy of the tree, and its commands pass. */
import { execFile } from 'node:child_process';
import { cp, mkdtemp, readdir, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Block, blocksOf } from '../docs/blocks.ts';
import { readPage } from '../docs/pages.ts';

const TIME = { timeout: 600_000 };
const BLOCKS = blocksOf(readPage('src/domain/policy/kinds/README.md'));
/** Outputs, and what no command of the guide reads. */
const LEFT_OUT = /^(\.git|node_modules|dist|coverage|\.build.*)$/;
const QUESTIONS = ['decides', 'windows', 'restartsAt', 'owns', 'notWithdrawable', 'overridesHolds', 'mayChange'];

let folder: string;
beforeAll(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), 'ebb-kind-')));
  const names = (await readdir('.')).filter((name) => !LEFT_OUT.test(name));
  for (const name of names) await cp(name, join(folder, name), { recursive: true });
  await symlink(join(process.cwd(), 'node_modules'), join(folder, 'node_modules'));
  for (const block of BLOCKS) await follow(block);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

it('makes a kind that compiles and passes the tests that it names', TIME, async () => {
  const [commands] = BLOCKS.filter(({ language }) => language === 'sh');
  for (const command of (commands?.text ?? '').trim().split('\n')) {
    expect(await run(command)).toMatchObject({ command, code: 0 });
  }
});

it('makes a kind that does not compile without an answer to each question', TIME, async () => {
  const path = join(folder, 'src/domain/policy/kinds/nightcap.ts');
  const text = await readFile(path, 'utf8');
  await writeFile(path, text.replace(new RegExp(`^  (${QUESTIONS.join('|')}): .*\n`, 'gm'), ''));
  const { code, output } = await run('npm run typecheck -- --noErrorTruncation');
  await writeFile(path, text);
  expect(code).not.toBe(0);
  const missing = /nightcap\.ts.*missing the following properties[^:]*: (.*)/.exec(output)?.[1]?.split(', ') ?? [];
  const more = /and (\d+) more/.exec(output)?.[1] ?? '0';
  expect(missing.length - (more === '0' ? 0 : 1) + Number(more), output).toBe(QUESTIONS.length);
});

/** Writes a file, or adds the lines of a diff at the place that its other lines name. */
async function follow({ language, note, text }: Block): Promise<void> {
  const path = join(folder, note);
  if (language === 'ts') await writeFile(path, text);
  if (language !== 'diff') return;
  const lines = text.trimEnd().split('\n');
  const there = lines.filter((line) => line.startsWith(' ')).map((line) => line.slice(1));
  const before = await readFile(path, 'utf8');
  expect(before, `${note} has the lines that the guide shows`).toContain(there.join('\n'));
  await writeFile(
    path,
    before.replace(there.join('\n'), () => lines.map((line) => line.slice(1)).join('\n')),
  );
}

async function run(command: string): Promise<{ command: string; code: number; output: string }> {
  const options = { cwd: folder, env: { ...process.env, CI: '' }, maxBuffer: 64 * 1024 * 1024 };
  try {
    const { stdout } = await promisify(execFile)('sh', ['-c', command], options);
    return { command, code: 0, output: stdout };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
    return { command, code, output: stdout + stderr };
  }
}
