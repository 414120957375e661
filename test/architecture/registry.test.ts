/** What people are told to type never asks the public registry for a name that is not ours: it would run with their API key. */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const RUN = /\b(?:npx|npm exec|npm x|pnpm dlx|pnpx|yarn dlx|bunx)(?: +-[\w-]+)*(?: +--)? +([@\w./-]+)/g;
const INSTALL = /\bnpm (?:i|install|add)\b([^\n`]*)/g;

const { name, bin } = JSON.parse(readFileSync('package.json', 'utf8'));

const files = spawnSync('git', ['ls-files', '-z', '*.md', '*.yml', '*.yaml', '*.service', 'Dockerfile', 'src', '.ci'], {
  encoding: 'utf8',
})
  .stdout.split('\0')
  .filter((file) => file !== '' && existsSync(file));
const texts = files.map((file) => ({ file, text: readFileSync(file, 'utf8') }));

const found = (pattern: RegExp) =>
  texts.flatMap(({ file, text }) => [...text.matchAll(pattern)].map(([, words = '']) => ({ file, words })));

it('npx runs nothing but what a checkout has installed, or a file', () => {
  const run = found(RUN);
  expect(run.length).toBeGreaterThan(5);
  expect(run.filter(({ words }) => !words.endsWith('.tgz') && !existsSync(`node_modules/.bin/${words}`))).toEqual([]);
});

it('ebb is installed from a tarball or from Git, never by its name', () => {
  const installed = found(INSTALL).map(({ file, words }) => ({
    file,
    what: words.replace(/ +-[\w-]+( \/\S+)?/g, '').trim(),
  }));
  expect(installed.filter(({ what }) => what.includes('npm pack')).length).toBeGreaterThan(2);
  expect(installed.filter(({ what }) => /^["']?@?ebb\b(?!.*\.tgz)/.test(what))).toEqual([]);
});

it('the name of the package has a scope, and the command has none', () => {
  expect(name).toMatch(/^@[a-z-]+\/ebb$/);
  expect(Object.keys(bin)).toEqual(['ebb']);
});
