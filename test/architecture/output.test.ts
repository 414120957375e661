import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';

/** Streams that are handed on to what shows progress or a made-up fleet: numbers and names of ours. */
const OWN_WORDS = new Set(['cli/read-fleet.ts', 'cli/past/progress.ts', 'cli/demo/narrator.ts']);

it('commands write through src/cli/output.ts alone', async () => {
  const found: string[] = [];
  for (const file of await readdir('src', { recursive: true })) {
    if (!file.endsWith('.ts') || file === 'cli/output.ts' || OWN_WORDS.has(file)) continue;
    const text = await readFile(join('src', file), 'utf8');
    if (/process\.(stdout|stderr)\.write|\bconsole\.(?:log|info|warn|error)\(|(?:screen|terminal)\.write\(/.test(text))
      found.push(file);
  }
  expect(found).toEqual([]);
});
