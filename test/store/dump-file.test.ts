import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readDump } from '../../src/adapters/store/dump-file.ts';
import { makeFolder } from '../support/platform.ts';

const HEAD = '{"ebb_store_dump":1}';
const HOLD =
  '{"kind":"hold","hold":{"id":"h1","owner":"ann","reason":"","createdAtMs":1,"expiresAtMs":2,"projectId":"p","computeId":"c"}}';

describe('a dump that cannot be read', () => {
  let folder: Awaited<ReturnType<typeof makeFolder>>;
  beforeAll(async () => {
    folder = await makeFolder();
  });
  afterAll(() => folder.remove());

  const problem = async (...lines: string[]) => {
    const path = join(folder.path, 'store.jsonl');
    await writeFile(path, lines.map((line) => `${line}\n`).join(''));
    const error = await Readable.from(readDump(path))
      .toArray()
      .catch((thrown: Error) => thrown.message.replaceAll(path, 'FILE'));
    return error;
  };

  it('is named with its line, and what to do', async () => {
    expect(await problem(HEAD, HOLD, '{"end":1}')).toMatchObject([{ kind: 'hold', hold: { id: 'h1' } }]);
    const foreign = 'FILE:1: is not a dump of a store: make one with ebb store dump --out FILE';
    expect(await problem()).toBe(foreign);
    expect(await problem('# a note')).toBe(foreign);
    expect(await problem('{"holds":[]}')).toBe(foreign);
    expect(await problem('{"ebb_store_dump":3}')).toBe(
      'FILE:1: has version 3, and this ebb reads versions 1 to 2: use the ebb that wrote it',
    );
    const tail = '; nothing is loaded: take another dump';
    expect(await problem(HEAD, HOLD, '{"kind":"hold"', '{"end":2}')).toBe(`FILE:3: is not JSON${tail}`);
    expect(await problem(HEAD, HOLD.replace('"h1"', '1'), '{"end":1}')).toMatch(/^FILE:2: hold\.id: .*expected string/);
    expect(await problem(HEAD, '{"kind":"lease"}', '{"end":1}')).toMatch(/^FILE:2: kind: /);
    expect(await problem(HEAD, HOLD)).toBe(`FILE:2: the file ends here, before its last line${tail}`);
    expect(await problem(HEAD, '{"end":1}')).toMatch(/^FILE:2: /);
    expect(await problem(HEAD, '{"end":0}', HOLD)).toBe(`FILE:3: something comes after its last line${tail}`);
    const none = Readable.from(readDump(join(folder.path, 'none'))).toArray();
    await expect(none).rejects.toThrow(/none: can't be read \(ENOENT\): check the path$/);
    const ofFolder = Readable.from(readDump(folder.path)).toArray();
    await expect(ofFolder).rejects.toThrow(`${folder.path}: can't be read (EISDIR): check the path`);
  });
});
