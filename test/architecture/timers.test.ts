import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { timerMs } from '../../src/ports/clock.ts';

it.each([
  [5, 5],
  [-1, 0],
  [2 ** 31, 2 ** 31 - 1],
  [Number.POSITIVE_INFINITY, 2 ** 31 - 1],
])('a timer of %d ms waits for %d ms', (ms, expected) => {
  expect(timerMs(ms)).toBe(expected);
});

/** A wait that is as long as something says: by no constant, and not bounded by `timerMs`. */
const UNBOUNDED = String.raw`\((?!timerMs\(|[A-Z][A-Z_]+[,)]|Math\.min\([^)]*[A-Z]_MS\b)`;

it('every wait as long as something says is bounded', async () => {
  const found: string[] = [];
  for (const file of await readdir('src', { recursive: true })) {
    // The emulator imports nothing of ebb; what it is asked to wait is bounded where it is read.
    if (!file.endsWith('.ts') || file.startsWith('emulator/')) continue;
    const text = await readFile(join('src', file), 'utf8');
    const alias = /import \{ setTimeout as (\w+) \} from 'node:timers\/promises'/.exec(text)?.[1];
    const names = ['AbortSignal\\.timeout', ...(alias === undefined ? [] : [`await ${alias}`])];
    for (const [call] of text.matchAll(new RegExp(`(${names.join('|')})${UNBOUNDED}`, 'g')))
      found.push(`${file}: ${call}`);
    for (const [, delay = ''] of text.matchAll(
      /set(?:Timeout|Interval)\((?:[^;{]*|[^;]*\{[\s\S]*?\n\s*\}), ([^;\n]*?)\)(?:\.unref\(\))?;/g,
    )) {
      if (!/^(timerMs\(.*|[A-Z][A-Z_]+|Math\.min\(.*)$/.test(delay)) found.push(`${file}: ${delay}`);
    }
  }
  expect(found).toEqual([]);
});
