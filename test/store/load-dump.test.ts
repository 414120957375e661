/** What the load of a dump leaves out, and what it tells. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { dumpLines } from '../../src/adapters/store/dump-file.ts';
import { openStore } from '../../src/compose/store.ts';
import { loadDump } from '../../src/compose/store-dump.ts';
import type { Dumped, Store } from '../../src/ports/store.ts';
import { readSettings, type Settings } from '../../src/settings/settings.ts';
import { aHold, aRecord } from '../support/builders.ts';
import { type EmbeddedFolder, embeddedFolder } from '../support/embedded-folder.ts';

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
afterEach(() => folder.remove());

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
