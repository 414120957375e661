import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

/** What lint can't see: members of globals that are otherwise fine. */
const IMPURE = /\bMath\.random\b|\brandomUUID\b|\bDateTime\.(now|local|utc)\(\)|\bnew Date\(\)/;
/** Waits and ids that a simulation could not drive: ports/clock.ts has them. */
const OWN_WAIT = /\bAbortSignal\.timeout\b|\brandomBytes\b|'node:timers/;
/** With what is imported of them. */
const LIBRARIES = new Map([
  ['luxon', /^/],
  ['cron-parser', /^/],
  ['node:crypto', /^import \{ createHash \}$/],
]);

describe('src/domain', () => {
  it('takes neither time nor chance from anywhere but its arguments', async () => {
    expect((await sources('src/domain')).filter(({ text }) => IMPURE.test(text)).map(({ file }) => file)).toEqual([]);
  });

  it('imports of libraries only luxon and cron-parser, and of node:crypto the hash', async () => {
    const imported = (await sources('src/domain')).flatMap(({ text }) => [
      ...text.matchAll(/^(.*) from '([^.'][^']*)'/gm),
    ]);
    const unknown = imported.filter(([, names = '', library = '']) => !LIBRARIES.get(library)?.test(names));
    expect(unknown.map(([line]) => line)).toEqual([]);
  });
});

describe('src/app', () => {
  it('waits, and names things, by its ports alone', async () => {
    const all = await sources('src/app');
    expect(all.length).toBeGreaterThan(50);
    expect(all.filter(({ text }) => IMPURE.test(text) || OWN_WAIT.test(text)).map(({ file }) => file)).toEqual([]);
  });
});

async function sources(folder: string): Promise<{ file: string; text: string }[]> {
  const files = (await readdir(folder, { recursive: true })).filter((file) => file.endsWith('.ts'));
  return Promise.all(files.map(async (file) => ({ file, text: await readFile(join(folder, file), 'utf8') })));
}
