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

  it('count as changed while a further change could look the same, and then no longer', async () => {
    const watch = watched(await folderWith({ 'a.yaml': '1' }));
    await watch.whole(async () => {}, readOnce);
    expect(await watch.changed()).toBe(true);
    await expect
      .poll(
        async () => {
          await watch.whole(async () => {}, readOnce);
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
    await watch.whole(async () => {
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
    await watched(folder).whole(async () => {
      if (reads.push('read') > 1) return;
      await symlink('..2', join(folder, '..data_tmp'));
      await rename(join(folder, '..data_tmp'), join(folder, '..data'));
    }, readOnce);
    expect(reads).toHaveLength(2);
  });

  it.each<[string, boolean, (folder: string) => Promise<void>]>([
    ['is written over', false, (folder) => writeFile(join(folder, 'a.yaml'), '22')],
    ['is gone', false, (folder) => rm(join(folder, 'a.yaml'))],
    ['is not touched', false, async () => {}],
    [
      'is replaced, and another written over',
      false,
      async (folder) => {
        await writeFile(join(folder, 'b.yaml'), '22');
        await writeFile(join(folder, '.a'), '2');
        await rename(join(folder, '.a'), join(folder, 'a.yaml'));
      },
    ],
    [
      'is replaced by one that was written beside it',
      true,
      async (folder) => {
        await writeFile(join(folder, '.a'), '2');
        await rename(join(folder, '.a'), join(folder, 'a.yaml'));
      },
    ],
  ])('where one %s: that all were replaced as a whole is %s', async (_what, replaced, change) => {
    const folder = await folderWith({ 'a.yaml': '1', 'b.yaml': '1' });
    const watch = watched(folder);
    await watch.whole(async () => {}, readOnce);
    expect(watch.replaced()).toBe(false);
    await change(folder);
    await watch.whole(async () => {}, readOnce);
    expect(watch.replaced()).toBe(replaced);
  });

  it('are replaced as a whole by the swap of a link, also those that are then gone', async () => {
    const folder = await folderWith({});
    for (const [version, files] of [
      ['..1', ['a.yaml', 'b.yaml']],
      ['..2', ['a.yaml']],
    ] as const) {
      await mkdir(join(folder, version));
      for (const name of files) await writeFile(join(folder, version, name), '1');
    }
    await symlink('..1', join(folder, '..data'));
    for (const name of ['a.yaml', 'b.yaml']) await symlink(`..data/${name}`, join(folder, name));
    const watch = watched(folder);
    await watch.whole(async () => {}, readOnce);
    await symlink('..2', join(folder, '..data_tmp'));
    await rename(join(folder, '..data_tmp'), join(folder, '..data'));
    await watch.whole(async () => {}, readOnce);
    expect(watch.replaced()).toBe(true);
  });

  it('are read once where nothing changes meanwhile', async () => {
    const reads: string[] = [];
    const watch = watched(await folderWith({ 'a.yaml': '1' }));
    await watch.whole(async () => void reads.push('read'), { waitUntilUnchanged: true });
    expect(reads).toHaveLength(1);
  });
});
