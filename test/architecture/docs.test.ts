import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';

const BESIDE = [
  'bench/README.md',
  'src/domain/policy/kinds/README.md',
  'test/README.md',
  'test/mutation-testing.md',
  'test/simulation.md',
];
const PAGES = ['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', ...BESIDE, ...(await pagesIn('docs'))];
const LINKS = (await Promise.all(PAGES.map(linksOf))).flat();
/** Files and folders that a page names from the root of the repository. */
const NAMED_PATH =
  /(?<![\w/.-])(?!prometheus\/api\/)(?:src|test|scripts|bench|deploy|schema|prometheus|grafana)\/(?:[\w.-]*[\w-]\/?)*/g;
const REPOSITORY = inRepository(LINKS.map(({ target }) => target));

describe('the documents', () => {
  it.each(PAGES)('%s links only to what is there', async (page) => {
    const broken = await Promise.all(
      LINKS.filter((link) => link.page === page).map(async ({ text, target, heading }) => {
        const isThere = REPOSITORY.has(target) && (heading === undefined || (await headingsOf(target)).has(heading));
        return isThere ? [] : [text];
      }),
    );
    expect(broken.flat()).toEqual([]);
  });

  it.each(PAGES)('%s closes each block of code on a line of its own', async (page) => {
    const fences = (await readFile(page, 'utf8')).split('\n').filter((line) => /^ *```/.test(line));
    // A language, and what tests do with the block.
    const isWrong = (line: string, index: number) => !(index % 2 === 0 ? /^ *```\w*( \S+)?$/ : /^ *```$/).test(line);
    expect(fences.filter(isWrong)).toEqual([]);
    expect(fences.length % 2).toBe(0);
  });

  it.each(PAGES.filter((page) => page !== 'CHANGELOG.md'))('%s names only files that are there', async (page) => {
    const text = await readFile(page, 'utf8');
    // A guide shows the files that its reader writes.
    const written = new Set([...text.matchAll(/```ts (\S+)/g)].map(([, path]) => path));
    const named = [...text.matchAll(NAMED_PATH)].map(([path]) => path);
    expect(named.filter((path) => !existsSync(path) && !written.has(path))).toEqual([]);
  });

  it.each(['src/domain', 'src/app'])('the code map has the folders of %s, and no others', async (folder) => {
    const text = await readFile('docs/architecture.md', 'utf8');
    const [, section = ''] = text.split(new RegExp(`^.*\\b${folder}/\`.*:$`, 'm'));
    const [table = ''] = /(?:^\|.*\n)+/m.exec(section) ?? [];
    const mapped = table.split('\n').flatMap((row) => [...(row.split('|')[1] ?? '').matchAll(/`(\w[\w-]*)\/`/g)]);
    const there = (await readdir(folder, { withFileTypes: true })).filter((entry) => entry.isDirectory());
    expect(mapped.map(([, name]) => name).toSorted()).toEqual(there.map(({ name }) => name).toSorted());
  });

  it('chain nothing to `ebb plan` with &&, which ends with 2 if there is something to do', async () => {
    const sources = (await readdir('src/cli', { recursive: true })).filter((path) => path.endsWith('.ts'));
    const chained = await Promise.all(
      [...PAGES, ...sources.map((path) => join('src/cli', path))].map(async (path) => {
        const text = await readFile(path, 'utf8');
        return path === 'CHANGELOG.md' ? [] : (text.match(/ebb plan\b[^\n;|#`]*&&.*/g) ?? []);
      }),
    );
    expect(chained.flat()).toEqual([]);
  });

  it('name for every invariant of the architecture the lint or the test that holds it', async () => {
    const text = await readFile('test/README.md', 'utf8');
    const invariants = text.split('\n- ').filter((item) => item.startsWith('Invariant:'));
    expect(invariants.length).toBeGreaterThan(10);
    const held = invariants.map((item) => [...item.matchAll(/`(test\/[\w/.-]+)`/g)].map(([, path]) => path ?? ''));
    expect(held.flat().filter((path) => !existsSync(path))).toEqual([]);
    expect(invariants.filter((item, index) => held[index]?.length === 0 && !/Lint:|Types:/.test(item))).toEqual([]);
  });

  it('give the two commands of the README word for word as CI and package.json know them', async () => {
    const readme = await readFile('README.md', 'utf8');
    const ci = await readFile('.ci/run', 'utf8');
    expect(readme).toContain('\nnpm ci && npm test\n');
    expect(readme).toContain('\nnpm ci && npm run demo\n');
    expect(ci).toContain('\nnpm ci && npm test\n');
  });
});

async function linksOf(page: string) {
  const text = await readFile(page, 'utf8');
  return [...text.matchAll(/\]\(([^)#:]*)(?:#([^):]*))?\)/g)].map(([link, path = '', heading]) => ({
    ...{ page, text: link, heading },
    target: path === '' ? page : join(dirname(page), path),
  }));
}

/** Those that are not only here: git knows them, or would if they were added. */
function inRepository(paths: readonly string[]): Set<string> {
  const here = new Set(paths.filter((path) => !path.startsWith('..') && existsSync(path)));
  const { stdout } = spawnSync('git', ['check-ignore', '-z', '--stdin'], {
    input: [...here].join('\0'),
    encoding: 'utf8',
  });
  for (const path of stdout.split('\0')) here.delete(path);
  return here;
}

/** Headings of a page as links name them. */
async function headingsOf(page: string): Promise<Set<string>> {
  const text = (await readFile(page, 'utf8')).replace(/^```[\s\S]*?^```$/gm, '');
  const headings = [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => heading);
  return new Set(
    headings.map((heading) =>
      heading
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  );
}

async function pagesIn(folder: string): Promise<string[]> {
  const names = await readdir(folder, { recursive: true });
  return names.filter((name) => name.endsWith('.md')).map((name) => join(folder, name));
}
