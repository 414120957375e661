/** What the load of a dump leaves out, and what it tells; and a dump of a store that fails. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { dumpLines } from '../../src/adapters/store/dump-file.ts';
import { openStore } from '../../src/compose/store.ts';
import { loadDump, openDump } from '../../src/compose/store-dump.ts';
import type { Dumped, Store } from '../../src/ports/store.ts';
import { readSettings, type Settings } from '../../src/settings/settings.ts';
import { aHold, aRecord } from '../support/builders.ts';
import { type EmbeddedFolder, embeddedFolder } from '../support/embedded-folder.ts';

const { failing } = vi.hoisted(() => ({
  failing: { calls: undefined as ((store: Store) => Partial<Store>) | undefined },
}));
vi.mock('../../src/adapters/store/create-store.ts', async (importOriginal) => {
  const { createStore } = await importOriginal<typeof import('../../src/adapters/store/create-store.ts')>();
  return {
    async createStore(options: Parameters<typeof createStore>[0]) {
      const store = await createStore(options);
      return { ...store, ...failing.calls?.(store) };
    },
  };
});

const DUMP: Dumped[] = [
  { kind: 'hold', hold: aHold() },
  { kind: 'hold', hold: aHold({ id: 'h2', expiresAtMs: 1 }) },
  {
    kind: 'freeze',
    freeze: {
      ...{ id: 'f1', owner: 'ann', reason: 'import', createdAtMs: 0, expiresAtMs: 1 },
      ...{ select: 'all', allowRaise: false },
    },
  },
  { kind: 'record', projectId: 'p-one', computeId: 'ep-one', record: aRecord() },
  { kind: 'record', projectId: 'p-two', computeId: 'ep-two', record: aRecord() },
];

let folder: EmbeddedFolder;
let settings: Settings;
let path: string;
beforeEach(async () => {
  folder = await embeddedFolder();
  path = join(folder.path, 'store.jsonl');
  const env = { EBB_QUEUE_URL: `embedded:${folder.path}`, EBB_API_KEY: 'secret' };
  const read = readSettings({ env, cwd: folder.path });
  if (!read.ok) throw new Error(read.problems.join());
  settings = read.settings;
  await writeFile(path, Readable.from(dumpLines(Readable.from(DUMP))));
});
afterEach(async () => {
  failing.calls = undefined;
  await folder.remove();
});

const load = () => loadDump({ settings, path, isWritten: true, acceptsEntries: false });

/** Does something with the store, and closes it. */
async function onStore<T>(work: (store: Store) => Promise<T>): Promise<T> {
  const opening = await openStore(settings);
  if (!opening.ok) throw new Error(opening.problem);
  const { store, close } = opening.value;
  return work(store).finally(close);
}

const audited = () =>
  onStore(async (store) => (await store.history({ limit: 9 })).map(({ reasons }) => reasons[0]?.message));

it('counts holds and freezes that have expired as left out', async () => {
  expect(await load()).toMatchObject({ ok: true, value: { counts: { hold: 1, freeze: 0, record: 2 }, expired: 2 } });
  expect(await audited()).toEqual(['the store was loaded from a dump: 1 holds, 0 freezes, 2 records']);
});

it('writes the rest if a project is in use, and the audit says what was written', async () => {
  failing.calls = (store) => ({
    acquireLease: async (name, ...others) =>
      name === 'project-p-one' ? undefined : store.acquireLease(name, ...others),
  });
  expect(await load()).toEqual({
    ok: false,
    problem: 'p-one is in use by a daemon: stop all daemons, and load again with --keep (not written: 1; all else is)',
  });
  expect(await audited()).toEqual(['the store was loaded from a dump: 1 holds, 0 freezes, 1 records']);
  expect(await onStore((store) => store.projectIds())).toEqual(['p-two']);
});

it('a store that fails while it is dumped can still be closed', async () => {
  failing.calls = () => ({ timeMs: () => Promise.reject(new Error('gone')) });
  const dump = await openDump(settings);
  if (!dump.ok) throw new Error(dump.problem);
  await expect(Readable.from(dump.value.lines).toArray()).rejects.toThrow('gone');
  await dump.value.close();
  expect(await onStore((store) => store.projectIds())).toEqual([]);
});
