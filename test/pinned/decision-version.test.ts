/** Ties the version of the engine to what it decides for the pinned corpus. */
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { DECISION_VERSION } from '../../src/domain/evaluate/decision-version.ts';

/** The corpus by version. The hash of a version that was released never changes. */
const CORPUS_OF_VERSION: Readonly<Record<number, string>> = {
  1: '16b9046b0ac795291345e34083d50f585e4b86cc8cebd9a9cc5da4dbf1bb9bfc',
};

async function hashOfCorpus(): Promise<string> {
  const hash = createHash('sha256');
  for (const folder of ['corpus', 'expected']) {
    const files = await readdir(`test/pinned/${folder}`);
    for (const file of files.toSorted())
      hash.update(`${file}\n${await readFile(`test/pinned/${folder}/${file}`, 'utf8')}`);
  }
  return hash.digest('hex');
}

it('the version of the engine is that of the pinned corpus: a change of the corpus raises DECISION_VERSION', async () => {
  const next = `once ${DECISION_VERSION} was released, raise DECISION_VERSION and add the hash of the corpus here`;
  expect(CORPUS_OF_VERSION[DECISION_VERSION], next).toBe(await hashOfCorpus());
});
