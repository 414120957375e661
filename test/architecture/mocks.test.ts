import { readFile } from 'node:fs/promises';
import { globSync } from 'tinyglobby';
import { expect, it } from 'vitest';

/** Test files share the modules of a process, so a mocked module reaches some of them, or not its own. */
it('no test mocks a module', async () => {
  const files = globSync(['test/**/*.ts', 'bench/**/*.ts']).filter(
    (file) => file !== 'test/architecture/mocks.test.ts',
  );
  expect(files.length).toBeGreaterThan(400);
  const texts = await Promise.all(files.map(async (file) => ({ file, text: await readFile(file, 'utf8') })));
  const mocking = texts.filter(({ text }) => /\bvi\.(mock|doMock|hoisted)\b/.test(text));
  expect(mocking.map(({ file }) => file)).toEqual([]);
});
