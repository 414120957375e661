import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { REASONS } from '../../src/domain/compute/reasons.ts';

it('documents every reason code in docs/reasons.md, and no other', async () => {
  const documented = [...(await readFile('docs/reasons.md', 'utf8')).matchAll(/^\| `(\w+)`/gm)].map(([, code]) => code);
  expect(documented.toSorted()).toEqual(Object.keys(REASONS).toSorted());
});

it('says every reason in a sentence of its own', () => {
  const sentences = Object.values(REASONS);
  for (const sentence of sentences) expect(sentence).toMatch(/^[a-z]+['a-z]* .{10,}[^.]$/);
  expect(new Set(sentences).size).toBe(sentences.length);
});
