import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { CONTROL_API_ERROR_CODES } from '../../src/ports/control-api.ts';

test('docs/errors.md tells every error code, and no other', async () => {
  const documented = [...(await readFile('docs/errors.md', 'utf8')).matchAll(/^\| `(\w+)`/gm)].map(([, code]) => code);
  expect(documented.toSorted()).toEqual([...CONTROL_API_ERROR_CODES].toSorted());
});
