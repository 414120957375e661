import { readFile } from 'node:fs/promises';
import { globSync } from 'tinyglobby';
import { expect, it } from 'vitest';

/** What scripts/mutation-runner.mjs provides of vitest. */
const PROVIDED = new Set(['describe', 'describe.each', 'it', 'it.each', 'test', 'test.each', 'expect']);

it('the tests of the domain use only what the runner for mutation testing provides of vitest', async () => {
  const files = globSync('test/domain/**/*.test.ts');
  expect(files.length).toBeGreaterThan(50);
  const unknown: string[] = [];
  for (const file of files) {
    const text = await readFile(file, 'utf8');
    const imported = /import \{([^}]*)\} from 'vitest'/.exec(text)?.[1]?.split(',') ?? [];
    const members = [...text.matchAll(/^\s*((?:describe|it|test)\.\w+)\(/gm)].map(([, member]) => member ?? '');
    const used = [...imported.map((name) => name.trim()), ...members].filter((name) => name !== '');
    unknown.push(...used.filter((name) => !PROVIDED.has(name)).map((name) => `${file}: ${name}`));
  }
  expect(unknown).toEqual([]);
});
