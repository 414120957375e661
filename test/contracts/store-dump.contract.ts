import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createStore } from '../../src/adapters/store/create-store.ts';
import { dumpLines, readDump } from '../../src/adapters/store/dump-file.ts';
import { withProjectLease } from '../../src/app/leases/locked-project.ts';
import { dumpStore, storedKeys, writeDump } from '../../src/app/store-dump.ts';
import { withRestore } from '../../src/domain/overrides/restore.ts';
import type { HistoryEntry } from '../../src/domain/records/history.ts';
import type { Store } from '../../src/ports/store.ts';
import { aRecord } from '../support/builders.ts';
import type { TestEngine } from '../support/engines.ts';
import { makeFolder } from '../support/platform.ts';
import { bounded } from '../support/selectors.ts';

const HOUR_MS = 3_600_000;
/** More than one turn of reading, and of writing. */
const UNITS = Array.from({ length: 700 }, (_, index) => `p-${1000 + index}`);
const NOTHING_LEFT = new Set<string>();

export function describeDump(current: () => { store: Store; on: TestEngine }): void {
  describe('dump', () => {
    const read = async (store: Store, nowMs: number) =>
      (await Readable.from(dumpLines(dumpStore(store, nowMs))).toArray()).join('');

    /** A compute with a record of its own, holds, a freeze, and three days of history and audit, some in the same instant. */
    async function fill(store: Store, nowMs: number): Promise<void> {
      const said = {
        owner: 'ann',
        reason: 'an "import"\n',
        createdAtMs: nowMs - HOUR_MS,
        expiresAtMs: nowMs + HOUR_MS,
      };
      const place = { projectId: 'project-1', computeId: 'compute-a' };
      await store.putHold({ ...said, ...place, id: 'h1', size: { minCu: 1, maxCu: 2 } });
      await store.putHold({ ...said, ...place, id: 'h2', expiresAtMs: nowMs + 1 });
      await store.putFreeze({ ...said, id: 'f1', select: bounded({ projects: ['web-*'] }), allowRaise: true });
      for (const [projectId, computeId] of [
        ['project-1', 'compute-a'],
        ['project-1', 'compute-b'],
        ['project-2', 'compute-c'],
      ] as const) {
        const record = aRecord({ firstSeenAtMs: nowMs, projectName: computeId });
        await withProjectLease({ store, holder: 'test' }, projectId, (lease) =>
          store.putRecord(projectId, computeId, record, lease),
        );
      }
      await store.putUsage('main/org', new Map(UNITS.map((unit, index) => [unit, Buffer.from([index, 255, 0])])));
      await store.putUsage('main/org/trial/proof', new Map([['p-1', Buffer.from('{}')]]));
      const kinds = ['write', 'held', 'hold', 'operation', 'refused'] as const;
      const entries = Array.from(
        { length: 60 },
        (_, n): HistoryEntry => ({
          atMs: nowMs - (20 - Math.floor(n / 3)) * 4 * HOUR_MS,
          projectId: 'project-1',
          computeId: `compute-${n % 4}`,
          kind: kinds[n % kinds.length] ?? 'write',
          setHash: 'a1',
          reasons: [{ code: 'window_open', message: `entry ${n}` }],
        }),
      );
      await store.appendHistory(entries);
    }

    /** What a store had, as a file, and the store that is as good as new after it. */
    async function dumped() {
      const { store, on } = current();
      const folder = await makeFolder();
      onTestFinished(folder.remove);
      const path = join(folder.path, 'store.jsonl');
      const nowMs = await store.timeMs();
      await fill(store, nowMs);
      const text = await read(store, nowMs);
      await writeFile(path, text);
      await on.reset();
      return { path, text, nowMs, other: await createStore(on) };
    }

    it('gives another store all that it has, so that its dump is the same', async () => {
      const { path, text, nowMs, other } = await dumped();
      expect(text.split('\n')).toHaveLength(1 + 3 + 3 + UNITS.length + 1 + 60 + 1 + 1);
      expect(await storedKeys(other, nowMs)).toEqual(NOTHING_LEFT);
      const written = await writeDump({ store: other, holder: 'load' }, readDump(path), {
        nowMs,
        skipKeys: NOTHING_LEFT,
      });
      expect(written).toEqual([]);
      expect(await read(other, nowMs)).toBe(text);
      expect([...(await storedKeys(other, nowMs))].sort()).toEqual([
        ...['freeze f1', 'history and audit', 'hold h1', 'hold h2'],
        ...['record project-1/compute-a', 'record project-1/compute-b', 'record project-2/compute-c'],
        ...['usage main/org', 'usage main/org/trial/proof'],
      ]);
    });

    it('keeps a freeze whose end cannot be read, as one of everything without an end', async () => {
      const { store, on } = current();
      const nowMs = await store.timeMs();
      // An infinite end is null in JSON.
      const endless = { owner: 'ann', reason: 'import', createdAtMs: nowMs, expiresAtMs: Number.POSITIVE_INFINITY };
      await store.putFreeze({ ...endless, id: 'f1', select: bounded({ projects: ['web-*'] }), allowRaise: true });
      const folder = await makeFolder();
      onTestFinished(folder.remove);
      const path = join(folder.path, 'store.jsonl');
      await writeFile(path, await read(store, nowMs));
      await on.reset();
      const other = await createStore(on);
      const deps = { store: other, holder: 'load' };
      expect(await writeDump(deps, readDump(path), { nowMs, skipKeys: NOTHING_LEFT })).toEqual([]);
      expect(await other.freezes(nowMs)).toMatchObject([
        { id: 'f1', select: 'all', allowRaise: false, expiresAtMs: Number.POSITIVE_INFINITY },
      ]);
    });

    it('leaves out requests to go back: nobody has confirmed them for the fleet as it is now', async () => {
      const { store } = current();
      const nowMs = await store.timeMs();
      const record = withRestore(aRecord(), { owner: 'ann', nowMs, now: false });
      async function* dump() {
        yield { kind: 'record' as const, projectId: 'project-1', computeId: 'compute-a', record };
      }
      await writeDump({ store, holder: 'load' }, dump(), { nowMs, skipKeys: NOTHING_LEFT });
      expect((await store.records('project-1')).get('compute-a')).toEqual(aRecord());
    });

    it('leaves what it is told to leave, what has expired, and a project that somebody else writes to', async () => {
      const { path, nowMs, other: store } = await dumped();
      const deps = { store, holder: 'load' };
      const skipKeys = new Set(['record project-1/compute-a', 'history and audit']);
      const later = { nowMs: nowMs + 1, skipKeys };
      const busy = await withProjectLease({ ...deps, holder: 'daemon' }, 'project-2', () =>
        writeDump(deps, readDump(path), later),
      );
      expect(busy).toMatchObject([
        { dumped: { computeId: 'compute-c' }, problem: expect.stringMatching(/^project-2 is in use by a daemon/) },
      ]);
      expect([...(await storedKeys(store, nowMs))].sort()).toEqual([
        ...['freeze f1', 'hold h1', 'record project-1/compute-b'],
        ...['usage main/org', 'usage main/org/trial/proof'],
      ]);
    });
  });
}
