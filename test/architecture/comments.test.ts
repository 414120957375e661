import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';

/** In characters, with the indentation. The formatter leaves comments as they are. */
const MAX_LENGTH = 150;

const isLong = (line: string) => line.length > MAX_LENGTH && /^\s*(\/\/|\/?\*)/.test(line);

it('no file has more than 400 lines; the linter does not count all comments', async () => {
  const files = (await readdir('src', { recursive: true })).filter((file) => /\.tsx?$/.test(file));
  expect(files.length).toBeGreaterThan(0);
  const lines = files.map(async (file) => ({ file, lines: (await readFile(join('src', file), 'utf8')).split('\n') }));
  const long = (await Promise.all(lines)).filter((one) => one.lines.length - 1 > 400);
  expect(long.map(({ file }) => file)).toEqual([]);
});

it.each(['src', 'test', 'bench', 'scripts'])('no line of a comment is too long: %s', async (folder) => {
  const files = (await readdir(folder, { recursive: true })).filter((file) => /\.m?[jt]sx?$/.test(file));
  expect(files.length).toBeGreaterThan(0);
  const long = files.map(async (file) => {
    const lines = (await readFile(join(folder, file), 'utf8')).split('\n');
    return lines.flatMap((line, index) => (isLong(line) ? [`${join(folder, file)}:${index + 1}`] : []));
  });
  expect((await Promise.all(long)).flat()).toEqual([]);
});
