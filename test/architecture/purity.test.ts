import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

/** Time, waits, ids and randomness that a simulation could not drive: ports/clock.ts and the options have them. */
const UNDRIVEN = new RegExp(
  [
    String.raw`\bDate\.now\b|\bnew Date\(\)|\bDateTime\.(now|local|utc)\(\)|\bperformance\b|'(node:)?perf_hooks'`,
    String.raw`\bset(Timeout|Interval|Immediate)\b|\bAbortSignal\.timeout\b|'(node:)?timers\b`,
    String.raw`\bMath\.random\b|\brandom(UUID|Bytes|Int)\b|\bgetRandomValues\b`,
  ].join('|'),
);
/** `adapters/control-api` without an exception: its defaults are in compose/control-api.ts. */
const DRIVEN = ['src/common', 'src/domain', 'src/ports', 'src/app', 'src/adapters/control-api'];
/** With what is imported of them. */
const LIBRARIES = new Map([
  ['luxon', /^/],
  ['cron-parser', /^/],
  ['node:crypto', /^import \{ createHash \}$/],
]);

it.each(DRIVEN)('%s takes time, waits, ids and randomness from its arguments alone', async (folder) => {
  const all = await sources(folder);
  expect(all.length).toBeGreaterThan(5);
  expect(all.filter(({ text }) => UNDRIVEN.test(text)).map(({ file }) => file)).toEqual([]);
});

it.each([
  'const startedAtMs = performance.now();',
  'Math.max(0, atMs - Date.now())',
  'const today = new Date();',
  "import { setTimeout as sleep } from 'node:timers/promises';",
  "import { setImmediate } from 'timers/promises';",
  "import { performance as time } from 'node:perf_hooks';",
  'const timer = setTimeout(expire, 5);',
  'globalThis.setInterval(tick, 5);',
  'setImmediate(done);',
  'const signal = AbortSignal.timeout(5);',
  'requestId = randomUUID()',
  'crypto.randomUUID()',
  'randomBytes(16)',
  'random: options.random ?? Math.random,',
  'DateTime.now()',
])('it would be found: %s', (line) => {
  expect(line).toMatch(UNDRIVEN);
});

describe('src/domain', () => {
  it('imports of libraries only luxon and cron-parser, and of node:crypto the hash', async () => {
    const imported = (await sources('src/domain')).flatMap(({ text }) => [
      ...text.matchAll(/^(.*) from '([^.'][^']*)'/gm),
    ]);
    const unknown = imported.filter(([, names = '', library = '']) => !LIBRARIES.get(library)?.test(names));
    expect(unknown.map(([line]) => line)).toEqual([]);
  });
});

async function sources(folder: string): Promise<{ file: string; text: string }[]> {
  const files = (await readdir(folder, { recursive: true })).filter((file) => file.endsWith('.ts'));
  return Promise.all(files.map(async (file) => ({ file, text: await readFile(join(folder, file), 'utf8') })));
}
