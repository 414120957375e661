/** Pages, `--help` and code use the terms of docs/glossary.md. */
import { readdir, readFile } from 'node:fs/promises';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { COMMANDS } from '../../src/cli/commands.ts';
import { PAGES } from '../docs/pages.ts';

/** What not to write, and what to write instead. */
const WORDS: readonly (readonly [RegExp, string])[] = [
  [/\banew\b/i, 'again'],
  [/\binto force\b/i, 'become current, take effect'],
  [/\bin force\b/i, 'current, active'],
  [/\b(taken up|takes? up|takes? it up)\b/i, 'reloaded'],
  [/\b(told|said) once\b/i, 'logged once'],
  [/\b(mend|mends|mended)\b/i, 'fix, fixed'],
  [/\bheals?\b/i, 'recovers'],
  [/\bfirst sight\b/i, 'newly discovered'],
  [/\b(just|newly) met\b/i, 'newly discovered'],
  [/\bfleet('s)? lease\b/i, 'leader lease'],
  [/\bgroup time\b|\btime of the group\b/i, 'store clock'],
  [/\boversight\b/i, 'leader refresh'],
  [/\bkeeper\b/i, 'resync loop'],
  [/\bcrossings?\b/i, 'boundary'],
  [/\b(carry|carries|carried) (it )?out\b/i, 'apply'],
  [/\bleave to write\b/i, 'write permission'],
  [/\b(no|an) opinion\b/i, 'no value, asks for'],
  [/\bwish(es)?\b/i, 'proposed value, request'],
  [/\bpictures? of the (fleet|project)\b/i, 'cached project'],
  [/\btaken project\b/i, 'locked project'],
  [/\bconclu(de|des|ded|sions?)\b/i, 'evaluate, evaluation'],
  [/\bjudge[sd]?\b/i, 'evaluate'],
  [/\b(un)?settl(e|es|ed|ing|ement)\b/i, 'confirm, record, reschedule'],
  [/\b(a|another|each|every|the|next|last|first|second|this) looks?\b|\blooks? again\b/i, 'reconcile, check'],
  [/\b(weigh|weighs|weighed|weighing|(?<!font-)weight)\b/i, 'disruption impact'],
  [/\bheard\b|\bhears?\b/i, 'effective, read'],
  [/\bsurvey(s|ed|ing)?\b/i, 'read the fleet'],
  [/\b(resting|rested)\b/i, 'paused, delayed'],
  [/\btellers?\b/i, 'authenticated caller'],
  [/\bdeeds?\b/i, 'audit event'],
  [/\bgive leave\b|\bleave (of|from) the\b|\bhas leave\b/i, 'permission'],
  [/\bthe house\b/i, 'the project, the architecture'],
  [/\bwhoever\b/i, 'name who'],
  [/\bthereby\b/i, 'so'],
  [/\bby then\b/i, 'by that time, in time'],
  [/\bwhat is so already\b/i, 'unchanged fields'],
  [/\bhands? over\b/i, 'swap, pause and resume'],
];

/** Stored codes and commands of 0.1.0 that are still accepted. */
const OLD_STORES = 'src/adapters/store/history-json.ts';
const OLD_COMMANDS = 'src/cli/commands.ts';

/** A queue keeps the name under which its jobs are stored. */
const STORED_QUEUES = [
  'src/adapters/queue/job-queue.ts',
  'src/app/daemon.ts',
  'src/app/group/pause-queues.ts',
  'src/app/triggers.ts',
  'src/compose/daemon.ts',
  'src/ports/job-queue.ts',
];

/** SQL has statements. */
const SQL = ['src/adapters/connections/postgres.ts', 'src/adapters/store/postgres.ts'];

/** What code does not name any more, what to write instead, and the files that still accept it (docs/renamed.md). */
const IDENTIFIERS: readonly (readonly [banned: RegExp, instead: string, allowed: readonly string[]])[] = [
  [/\bfirst sight\b/, 'newly discovered', [OLD_STORES]],
  [/\bno opinion\b/, 'no value', [OLD_STORES]],
  [/\bthaw(s|ed|ing)?\b/, 'unfreeze', [OLD_COMMANDS, OLD_STORES]],
  [/\bfleet (lease|taken|left)\b/, 'leader lease, acquired, lost', []],
  [/\bebb\.(background works|clock right|current again|policies mended|policies resting)\b/, 'docs/renamed.md', []],
  [
    /\bebb\.(project answers|source answers|stored ahead|tokens read|narrow key|record broken)\b/,
    'docs/renamed.md',
    [],
  ],
  [/\bgroup time\b/, 'store clock', []],
  [/\bleave to write\b/, 'write permission', []],
  [/\btaken project\b/, 'locked project', []],
  [/\boversight\b/, 'leader refresh', []],
  [/\bkeeper\b/, 'resync loop', []],
  [/\bpictures?\b/, 'cached project', []],
  [/\bjudge(s|d|ment|ments)?\b|\bjudging\b|\bconclu(de|des|ded|sions?)\b/, 'evaluate, evaluation', []],
  [/\bwish(es)?\b/, 'proposed value', []],
  [/\btellers?\b/, 'caller', []],
  [/\bdeeds?\b/, 'audit event', []],
  [/\b(mend|mends|mended)\b/, 'corrected, recovered', []],
  [/\buntil it works\b/, 'run in background', []],
];

/** What is ordinary English in a sentence, but no name: not an identifier, a code or a key. */
const NAMES: readonly (readonly [banned: RegExp, instead: string, allowed: readonly string[]])[] = [
  [/\b(un)?settl(e|es|ing|ement)\b|(?<!\ball )\bsettled\b|\bunsettled\b/, 'confirm, record, decide', []],
  [/\blook(s|ed|ing)?\b/, 'reconcile, check, search, poll', []],
  [/\bcrossings?\b/, 'boundary', STORED_QUEUES],
  [/\b(rests|rested|resting)\b/, 'pause, delay', []],
  [/\bsurvey\w*/, 'read fleet', []],
  [/\b(told|tells?|telling)\b/, 'report, log, print', []],
  [/\b(heard|hears?|hearing|unheard)\b/, 'effective, handles', []],
  [/\b(says?|said|saying)\b/, 'type of a directive, log, print', []],
  [/\bweigh(s|ed|ing|t)?\b/, 'measure impact', []],
  [/\b(in|into) force\b/, 'current', []],
  [/\banew\b|\btaken? up\b/, 'again, reloaded', []],
  [/\b(carry|carries|carried) out\b/, 'apply', []],
  [/\bstatements?\b/, 'directive', SQL],
  [/\bopinions?\b/, 'value', [OLD_STORES]],
  [/\bheal(s|ed)?\b/, 'recover', []],
];

/** The title of a test, or of a group of tests. */
const TITLE = /^\s*(?:it|test|describe|describeWith)\b[^'"`\n]*\(\s*(?:'[\w-]+', *)?(['"`])(.*?[^\\])\1,/gm;

/** Every module of src, with its path. */
async function sources(): Promise<(readonly [file: string, text: string])[]> {
  const files = (await readdir('src', { recursive: true })).map((file) => `src/${file}`);
  const modules = files.filter((file) => /\.tsx?$/.test(file));
  return Promise.all(modules.map(async (file) => [file, await readFile(file, 'utf8')] as const));
}

const COMMENT = /\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/.*$/gm;

/** The words of code: without comments, identifiers and strings split at capitals, `_` and `-`. */
function wordsOf(code: string): string {
  return code
    .replace(COMMENT, ' ')
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replace(/[_-]/g, ' ')
    .toLowerCase();
}

/** What code consists of: names (identifiers, and strings without a space), and sentences (texts with spaces). */
function partsOf(file: string, code: string): { names: string; sentences: string[] } {
  const names: string[] = [];
  const sentences: string[] = [];
  const visit = (node: ts.Node): void => {
    const isText = ts.isStringLiteralLike(node) || ts.isJsxText(node) || ts.isTemplateMiddleOrTemplateTail(node);
    if (isText || ts.isTemplateHead(node)) (/\s/.test(node.text) ? sentences : names).push(node.text);
    if (ts.isIdentifier(node)) names.push(node.text);
    ts.forEachChild(node, visit);
  };
  visit(
    ts.createSourceFile(file, code, ts.ScriptTarget.Latest, false, file.endsWith('x') ? ts.ScriptKind.TSX : undefined),
  );
  return { names: wordsOf(names.filter((name) => !name.includes('/')).join('\n')), sentences };
}

/** Without what is no prose: blocks of code, code within a line, targets of links. */
function proseOf(markdown: string): string {
  return markdown
    .replace(/^```[\s\S]*?^```$/gm, '')
    .replace(/`[^`\n]*`/g, '`')
    .replace(/\]\([^)]*\)/g, ']')
    .replace(/\s+/g, ' ');
}

function foundIn(prose: string): string[] {
  return WORDS.flatMap(([word, instead]) => {
    const found = word.exec(prose);
    return found ? [`"${prose.slice(Math.max(0, found.index - 40), found.index + 40)}": write ${instead}`] : [];
  });
}

describe('the words of the glossary', () => {
  it.each([...PAGES, 'CHANGELOG.md'])('are those of %s', async (page) => {
    expect(foundIn(proseOf(await readFile(page, 'utf8')))).toEqual([]);
  });

  it.each(COMMANDS)('are those of ebb $name --help', async ({ load }) => {
    const command = await load();
    let help = '';
    command.configureOutput({ writeOut: (text) => (help += text) }).outputHelp();
    expect(help).toContain(command.description().slice(0, 20));
    expect(foundIn(help.replace(/\s+/g, ' '))).toEqual([]);
  });

  it('are those of the titles of tests', async () => {
    const files = (await readdir('test', { recursive: true })).filter((file) => file.endsWith('.ts'));
    const texts = await Promise.all(files.map((file) => readFile(`test/${file}`, 'utf8')));
    const titles = texts.flatMap((text) => [...text.matchAll(TITLE)].map(([, , title = '']) => title));
    expect(titles.length).toBeGreaterThan(1000);
    expect(titles.flatMap(foundIn)).toEqual([]);
  });

  it('are those of the comments of src', async () => {
    const texts = await sources();
    const comments = texts.flatMap(([file, text]) => (text.match(COMMENT) ?? []).map((one) => `${file}: ${one}`));
    expect(comments.length).toBeGreaterThan(1000);
    expect(comments.flatMap((comment) => foundIn(proseOf(comment.replace(/\S+\.ts\b/g, ''))))).toEqual([]);
  });

  it.each(IDENTIFIERS)('leave no %s in code', async (banned, instead, allowed) => {
    const found = (await sources()).filter(([, text]) => banned.test(wordsOf(text))).map(([file]) => file);
    expect(found.toSorted(), `write ${instead}`).toEqual(allowed.toSorted());
  });

  it('are those of names and sentences in code', async () => {
    const texts = (await sources()).map(([file, text]) => [file, partsOf(file, text)] as const);
    for (const [banned, instead, allowed] of NAMES) {
      const found = texts.filter(([, { names }]) => banned.test(names)).map(([file]) => file);
      expect(found.toSorted(), `${banned}: write ${instead}`).toEqual(allowed.toSorted());
    }
    const sentences = texts.flatMap(([file, parts]) => parts.sentences.map((sentence) => `${file}: ${sentence}`));
    expect(sentences.flatMap(foundIn)).toEqual([]);
  });

  it('are found in names and sentences', () => {
    const { names, sentences } = partsOf('a.ts', "const lookAgainMs = f('said_once', 'it looks so', toldMs);");
    expect(names.split('\n')).toEqual(['look again ms', 'f', 'said once', 'told ms']);
    expect(sentences).toEqual(['it looks so']);
  });

  it('are looked for in identifiers and strings of code, not in its comments', () => {
    const code = "/** firstSight */\nconst firstSight = 'no_value'; // no_opinion";
    expect(wordsOf(code)).toMatch(/first sight.*no value/);
    expect(wordsOf(code)).not.toMatch(/no opinion|\*/);
  });

  it('are looked for in prose only', () => {
    expect(foundIn(proseOf('The policy set in\nforce.'))).toHaveLength(1);
    expect(foundIn(proseOf('`first sight`, [why](keeper.md)\n```\nkeeper\n```\n'))).toEqual([]);
  });
});
