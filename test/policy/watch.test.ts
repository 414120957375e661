import { mkdir, mkdtemp, rename, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { findPolicyFiles } from '../../src/policy/find-files.ts';
import { watchFiles } from '../../src/policy/watch.ts';

const folders: string[] = [];
afterEach(async () => {
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true });
});

/** Long ago, so that nothing counts as changed just now. */
const EARLIER = new Date('2026-01-01T00:00:00Z');

async function folderWith(files: Record<string, string>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'ebb-watch-'));
  folders.push(folder);
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
  return folder;
}

const watched = (folder: string) => watchFiles({ files: async () => (await findPolicyFiles([folder], '/')).files });
const readOnce = { waitUntilUnchanged: false };

describe('files that are watched', () => {
  it('have changed as long as nobody has read them', async () => {
    const watch = watched(await folderWith({ 'a.yaml': '1' }));
    expect(await watch.changed()).toBe(true);
  });

  it('were written as long ago as they say, but for what a link leads to', async () => {
    const folder = await folderWith({ 'a.yaml': '1', '.b': '1' });
    await symlink('.b', join(folder, 'b.yaml'));
    const ages = [...(await watched(folder).writtenAgoMs())];
    expect(ages.map(([file]) => file)).toEqual([join(folder, 'a.yaml')]);
    expect(ages[0]?.[1]).toBeGreaterThanOrEqual(0);
  });

  it('have changed in place still after a reading that threw', async () => {
    const folder = await folderWith({ 'a.yaml': '1' });
    const watch = watched(folder);
    await watch.readConsistently(async () => {}, readOnce);
    await writeFile(join(folder, 'a.yaml'), 'half');
    const broken = () => Promise.reject(new Error('it is being written'));
    await expect(watch.readConsistently(broken, readOnce)).rejects.toThrow('it is being written');
    await watch.readConsistently(async () => {}, readOnce);
    expect(watch.changes().inPlace).toEqual([join(folder, 'a.yaml')]);
  });

  it('count as changed while a further change could look the same, and then no longer', async () => {
    const watch = watched(await folderWith({ 'a.yaml': '1' }));
    await watch.readConsistently(async () => {}, readOnce);
    expect(await watch.changed()).toBe(true);
    await expect
      .poll(
        async () => {
          await watch.readConsistently(async () => {}, readOnce);
          return watch.changed();
        },
        { timeout: 20_000, interval: 250 },
      )
      .toBe(false);
  });

  it.each<[string, (folder: string) => Promise<void>]>([
    ['is written over with a text of the same length', (folder) => writeFile(join(folder, 'a.yaml'), '2')],
    ['gets back an older time', (folder) => utimes(join(folder, 'a.yaml'), EARLIER, EARLIER)],
    ['is joined by another', (folder) => writeFile(join(folder, 'b.yaml'), '1')],
    ['is gone', (folder) => rm(join(folder, 'a.yaml'))],
    [
      'is replaced by one that was written beside it',
      async (folder) => {
        await writeFile(join(folder, '.a.swp'), '2');
        await rename(join(folder, '.a.swp'), join(folder, 'a.yaml'));
      },
    ],
  ])('have changed when one %s', async (_what, change) => {
    const folder = await folderWith({ 'a.yaml': '1' });
    const reads: string[] = [];
    const watch = watched(folder);
    await watch.readConsistently(async () => {
      if (reads.push('read') === 1) await change(folder);
    }, readOnce);
    // It changed while it was read, so it is read once more, and only once.
    expect(reads).toHaveLength(2);
  });

  it('have changed when the link that a mounted volume leads through is swapped', async () => {
    const folder = await folderWith({});
    for (const version of ['..1', '..2']) {
      await mkdir(join(folder, version));
      await writeFile(join(folder, version, 'a.yaml'), '1');
    }
    await symlink('..1', join(folder, '..data'));
    await symlink('..data/a.yaml', join(folder, 'a.yaml'));
    const reads: string[] = [];
    await watched(folder).readConsistently(async () => {
      if (reads.push('read') > 1) return;
      await symlink('..2', join(folder, '..data_tmp'));
      await rename(join(folder, '..data_tmp'), join(folder, '..data'));
    }, readOnce);
    expect(reads).toHaveLength(2);
  });

  const replace = async (file: string, text: string) => {
    await writeFile(`${file}.new`, text);
    await rename(`${file}.new`, file);
  };

  it.each<[string, { inPlace?: string[]; replaced?: string[] }, (folder: string) => Promise<void>]>([
    ['is written over', { inPlace: ['a.yaml'] }, (folder) => writeFile(join(folder, 'a.yaml'), '22')],
    ['is gone', { inPlace: ['a.yaml'] }, (folder) => rm(join(folder, 'a.yaml'))],
    ['is created', { inPlace: ['c.yaml'] }, (folder) => writeFile(join(folder, 'c.yaml'), '2')],
    ['is not touched', {}, async () => {}],
    [
      'is replaced by one that was written beside it',
      { replaced: ['a.yaml'] },
      (folder) => replace(join(folder, 'a.yaml'), '2'),
    ],
    [
      'is replaced, and another written over',
      { inPlace: ['b.yaml'], replaced: ['a.yaml'] },
      async (folder) => {
        await writeFile(join(folder, 'b.yaml'), '22');
        await replace(join(folder, 'a.yaml'), '2');
      },
    ],
    [
      'is written anew after the old one was moved out of the way',
      { inPlace: ['a.yaml'] },
      async (folder) => {
        await rename(join(folder, 'a.yaml'), join(folder, 'a.yaml~'));
        await writeFile(join(folder, 'a.yaml'), '2');
      },
    ],
    [
      'becomes a link, and another link is new',
      { replaced: ['a.yaml', 'c.yaml'] },
      async (folder) => {
        await rename(join(folder, 'a.yaml'), join(folder, '.old'));
        await symlink('.old', join(folder, 'a.yaml'));
        await symlink('.old', join(folder, 'c.yaml'));
      },
    ],
  ])('where one %s: that is told apart from what was replaced as a whole', async (_what, expected, change) => {
    const folder = await folderWith({ 'a.yaml': '1', 'b.yaml': '1' });
    const watch = watched(folder);
    await watch.readConsistently(async () => {}, readOnce);
    expect(watch.changes()).toEqual({ inPlace: [], replaced: [] });
    await change(folder);
    await watch.readConsistently(async () => {}, readOnce);
    const paths = (names: string[] = []) => names.map((name) => join(folder, name));
    expect(watch.changes()).toEqual({ inPlace: paths(expected.inPlace), replaced: paths(expected.replaced) });
  });

  it('are replaced as a whole by the swap of a link above them, also those that are then gone or new', async () => {
    const folder = await folderWith({});
    for (const [version, files] of [
      ['v1', ['a.yaml', 'gone.yaml']],
      ['v2', ['a.yaml', 'sub/new.yaml']],
    ] as const) {
      await mkdir(join(folder, version, 'sub'), { recursive: true });
      for (const name of files) await writeFile(join(folder, version, name), '1');
    }
    await symlink('v1', join(folder, 'current'));
    const watch = watched(join(folder, 'current'));
    await watch.readConsistently(async () => {}, readOnce);
    await symlink('v2', join(folder, 'current_tmp'));
    await rename(join(folder, 'current_tmp'), join(folder, 'current'));
    await watch.readConsistently(async () => {}, readOnce);
    const names = ['a.yaml', 'gone.yaml', 'sub/new.yaml'].map((name) => join(folder, 'current', name));
    expect(watch.changes()).toEqual({ inPlace: [], replaced: names });
    // What is created or deleted in it afterwards was not swapped.
    await writeFile(join(folder, 'v2', 'more.yaml'), '1');
    await rm(join(folder, 'v2', 'a.yaml'));
    await watch.readConsistently(async () => {}, readOnce);
    const inPlace = ['a.yaml', 'more.yaml'].map((name) => join(folder, 'current', name));
    expect(watch.changes()).toEqual({ inPlace, replaced: [] });
  });

  it('are read once where nothing changes meanwhile', async () => {
    const reads: string[] = [];
    const watch = watched(await folderWith({ 'a.yaml': '1' }));
    await watch.readConsistently(async () => void reads.push('read'), { waitUntilUnchanged: true });
    expect(reads).toHaveLength(1);
  });
});
