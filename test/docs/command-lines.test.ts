/** What the pages and `--help` tell people to type is what the commands take. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command, CommanderError } from 'commander';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { COMMANDS } from '../../src/cli/commands.ts';
import { makeFolder } from '../support/platform.ts';
import { blocksOf, exchangesOf } from './blocks.ts';
import { PAGES, readPage } from './pages.ts';

/**
 * For bash: `ebb` only notes its words, whoever it is started by, and nothing else is found. So quotes, variables,
 * pipes and here-documents mean what they mean to a reader's shell.
 */
const STAND_INS = String.raw`
PATH=/nowhere
ebb() { printf '%s\0' "$@" $'\x1e' >> "$WORDS"; }
npm() {
  [ "$1" = run ] || return 0
  local script="$2"; shift 2; [ "$1" != -- ] || shift
  case $script in demo) ebb demo "$@" ;; ebb) ebb "$@" ;; esac
}
docker() { while [ $# -gt 0 ] && [ "$1" != exec ]; do shift; done; [ $# -gt 1 ] && { shift 2; "$@"; }; }
kubectl() { while [ $# -gt 0 ] && [ "$1" != -- ]; do shift; done; [ $# -gt 1 ] && { shift; "$@"; }; }
command_not_found_handle() { :; }
`;

let folder: Awaited<ReturnType<typeof makeFolder>>;
beforeAll(async () => {
  folder = await makeFolder();
});
afterAll(() => folder?.remove());

/** The command lines of `ebb` in a script, each as its words. */
function linesIn(script: string): string[][] {
  const words = join(folder.path, 'words');
  spawnSync('bash', ['--noprofile', '--norc', '-c', `: > "$WORDS"\n${STAND_INS}\n${script}\nwait`], {
    cwd: folder.path,
    env: { PATH: process.env.PATH, WORDS: words },
    input: '',
    timeout: 30_000,
  });
  const lines = readFileSync(words, 'utf8').split('\u001e\0').slice(0, -1);
  return lines.map((line) => line.split('\0').slice(0, -1));
}

/** The whole program, which stops before it does anything. */
async function program(): Promise<Command> {
  const whole = new Command('ebb')
    .option('--verbose')
    .version('test')
    .configureOutput({ writeOut: () => {}, writeErr: () => {} })
    .exitOverride()
    .hook('preAction', () => {
      throw new Understood();
    });
  const commands = await Promise.all(COMMANDS.map(({ load }) => load()));
  for (const command of commands) {
    for (const below of command.commands) below.copyInheritedSettings(whole);
    whole.addCommand(command.copyInheritedSettings(whole));
  }
  return whole;
}

class Understood extends Error {}

/** What is wrong with a command line; undefined if it would be carried out, or shows help. */
async function refusal(words: readonly string[]): Promise<string | undefined> {
  try {
    await (await program()).parseAsync([...words], { from: 'user' });
  } catch (error) {
    if (error instanceof Understood) return undefined;
    if (error instanceof CommanderError && error.exitCode === 0) return undefined;
    return `ebb ${words.join(' ')}: ${error instanceof Error ? error.message : error}`;
  }
  return `ebb ${words.join(' ')}: does nothing`;
}

async function refusals(lines: readonly string[][]): Promise<string[]> {
  const all = await Promise.all(lines.map(refusal));
  return all.filter((one) => one !== undefined);
}

function scriptsOf(page: string): string[] {
  return blocksOf(readPage(page)).flatMap((block) => {
    if (block.language === 'sh') return [block.text];
    return block.language === 'console' ? exchangesOf(block).map(({ command }) => command) : [];
  });
}

describe('every command line', () => {
  const pages = PAGES.filter((page) => /\bebb /.test(scriptsOf(page).join('\n')));

  it.each(pages)('in the blocks of %s is understood', async (page) => {
    const lines = linesIn(scriptsOf(page).join('\n'));
    expect(lines.length).toBeGreaterThan(0);
    expect(await refusals(lines)).toEqual([]);
  });

  it('in the text of a page names a command and flags that there are', async () => {
    const whole = await program();
    const wrong = PAGES.flatMap((page) => {
      const text = readPage(page).replace(/^ *```[\s\S]*?^ *```$/gm, '');
      const spans = [...text.matchAll(/`(ebb [a-z][^`]*)`/g)].flatMap(([, span = '']) => span.split(/ (?:&&|\|) /));
      const named = spans.flatMap((span) => /^ebb ([a-z].*)$/s.exec(span)?.[1] ?? []);
      return named.flatMap((words) => unknownWords(whole, words.split(/[\s[\]|,;]+/))).map((one) => `${page}: ${one}`);
    });
    expect(wrong).toEqual([]);
  });

  it('that nothing understands is refused', async () => {
    const lines = linesIn("ebb plan --fleet 'a b' | jq .\nEBB_X=1 ebb hold ep-a --for ever\nebb paln");
    expect(lines[0]).toEqual(['plan', '--fleet', 'a b']);
    expect(await refusals(lines)).toEqual([
      expect.stringMatching(/^ebb hold ep-a --for ever: .*expected a duration/),
      expect.stringMatching(/^ebb paln: .*unknown command/),
    ]);
  });

  it('in the examples of --help is understood', async () => {
    const helps = await Promise.all(COMMANDS.map(async ({ load }) => helpOf(await load())));
    // What an example is for stands behind two blanks or more.
    const examples = helps.flatMap((help) =>
      [...help.matchAll(/^ {2}\$ (.+?)(?: {2,}.*)?$/gm)].map(([, line]) => line),
    );
    const lines = linesIn(examples.join('\n'));
    expect(lines.length).toBeGreaterThanOrEqual(COMMANDS.length);
    expect(await refusals(lines)).toEqual([]);
  });
});

it('every block that shows what is printed is run by a test', () => {
  const isRun = (page: string, note: string) =>
    ['docs/tutorial.md', 'docs/day-2.md'].includes(page) || ['run', 'stays'].includes(note);
  const notRun = PAGES.flatMap((page) =>
    blocksOf(readPage(page))
      .filter((block) => block.language === 'console' && exchangesOf(block).some(({ output }) => output !== ''))
      .filter(({ note }) => !isRun(page, note))
      .map(({ line }) => `${page}:${line}`),
  );
  expect(notRun).toEqual([]);
});

function unknownWords(whole: Command, [name = '', ...words]: readonly string[]): string[] {
  const command = whole.commands.find((one) => one.name() === name);
  if (!command) return [name];
  const below = command.commands.find((one) => one.name() === words[0]) ?? command;
  const known = [...below.options, ...whole.options].flatMap(({ long }) => long ?? []);
  const flags = words.filter((word) => word.startsWith('--')).map((word) => word.split('=')[0] ?? '');
  return flags.filter((flag) => ![...known, '--help'].includes(flag)).map((flag) => `${name} ${flag}`);
}

function helpOf(command: Command): string {
  const written: string[] = [];
  command.configureOutput({ writeOut: (text) => void written.push(text) }).outputHelp();
  return written.join('');
}
