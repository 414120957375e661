import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const MAX_WORDS = 42_000;
const MAX_LINES_OF_README = 90;

it('README and docs stay short enough to be read', async () => {
  const pages = (await readdir('docs')).filter((name) => name.endsWith('.md')).map((name) => join('docs', name));
  const readme = await readFile('README.md', 'utf8');
  const texts = [readme, ...(await Promise.all(pages.map((page) => readFile(page, 'utf8'))))];
  const words = texts.flatMap((text) => text.split(/\s+/).filter((word) => word !== ''));
  expect(words.length).toBeLessThanOrEqual(MAX_WORDS);
  expect(readme.trimEnd().split('\n').length).toBeLessThanOrEqual(MAX_LINES_OF_README);
});
