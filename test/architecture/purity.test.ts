import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

/** What lint can't see: members of globals that are otherwise fine. */
const IMPURE = /\bMath\.random\b|\brandomUUID\b|\bDateTime\.(now|local|utc)\(\)|\bnew Date\(\)/;
/** With what is imported of them. */
const LIBRARIES = new Map([
  ['luxon', /^/],
  ['cron-parser', /^/],
  ['node:crypto', /^import \{ createHash \}$/],
]);

describe('src/domain', () => {
  it('takes neither time nor chance from anywhere but its arguments', async () => {
    expect((await sources()).filter(({ text }) => IMPURE.test(text)).map(({ file }) => file)).toEqual([]);
  });

  it('imports of libraries only luxon and cron-parser, and of node:crypto the hash', async () => {
    const imported = (await sources()).flatMap(({ text }) => [...text.matchAll(/^(.*) from '([^.'][^']*)'/gm)]);
    const unknown = imported.filter(([, names = '', library = '']) => !LIBRARIES.get(library)?.test(names));
    expect(unknown.map(([line]) => line)).toEqual([]);
  });
});

async function sources(): Promise<{ file: string; text: string }[]> {
  const files = (await readdir('src/domain', { recursive: true })).filter((file) => file.endsWith('.ts'));
  return Promise.all(files.map(async (file) => ({ file, text: await readFile(join('src/domain', file), 'utf8') })));
}
