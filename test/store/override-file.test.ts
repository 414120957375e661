import { readdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it, type TestContext } from 'vitest';
import { createOverrideFile } from '../../src/adapters/store/local-files.ts';
import type { StoredOverrides } from '../../src/ports/store.ts';
import { memoryLog } from '../support/memory-log.ts';
import { makeFolder } from '../support/platform.ts';
import { bounded } from '../support/selectors.ts';

const COMMON = { owner: 'zoe', reason: 'incident', createdAtMs: 1, expiresAtMs: 2 };
const SAID: StoredOverrides = {
  holds: [{ ...COMMON, id: 'h-1', projectId: 'one', computeId: 'ep-one', freeze: true }],
  freezes: [{ ...COMMON, id: 'f-1', select: bounded({ projects: ['shop-*'], minAgeMs: 60_000 }), allowRaise: true }],
};

async function aFile({ onTestFinished }: Pick<TestContext, 'onTestFinished'>) {
  const folder = await makeFolder({});
  onTestFinished(() => folder.remove().then(() => {}));
  const path = join(folder.path, 'state', 'group.json');
  return { path, folder: folder.path, file: createOverrideFile({ path, log: memoryLog() }) };
}

it('gives back what was kept last, readable for its owner alone, and leaves nothing else behind', async (test) => {
  const { path, folder, file } = await aFile(test);
  expect(await file.read()).toEqual({ ok: true, value: undefined });
  await Promise.all([file.keep({ holds: [], freezes: [] }), file.keep(SAID)]);
  expect(await file.read()).toEqual({ ok: true, value: SAID });
  expect(await readdir(join(folder, 'state'))).toEqual(['group.json']);
  expect((await stat(path)).mode & 0o777).toBe(0o600);
});

it('takes a freeze that it cannot read for one of everything', async (test) => {
  const { path, file } = await aFile(test);
  await file.keep(SAID);
  await writeFile(
    path,
    JSON.stringify({ holds: [], freezes: [{ id: 'newer', expiresAtMs: 7, select: { likes: 3 } }] }),
  );
  const read = await file.read();
  expect(read).toMatchObject({ ok: true, value: { freezes: [{ id: 'newer', select: 'all', expiresAtMs: 7 }] } });
});

it('says where a file is that is broken, and what to do', async (test) => {
  const { path, file } = await aFile(test);
  await file.keep(SAID);
  await writeFile(path, '{"holds":');
  const problem = `${path}: is broken; it holds the freezes and holds that people have set: see that none is missing from the store (ebb status), then delete it`;
  expect(await file.read()).toEqual({ ok: false, problem });
});
