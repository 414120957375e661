import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readOperations } from '../../src/app/fleet/read-operations.ts';
import { openJournal, operationsReadLately } from '../../src/cli/past/pages-journal.ts';
import type { Operation } from '../../src/ports/control-api.ts';

const NOW = Date.parse('2026-03-02T00:00:00Z');
const HOUR = 3_600_000;
const ASKED = { apiUrl: 'https://api', group: 'g', days: 28 };

let folder = '';
let parent = '';
beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), 'ebb-journal-'));
  folder = join(parent, '.ebb');
});
afterEach(() => rmSync(parent, { recursive: true }));

/** Each project has three pages of one operation; after so many answers the run is cut off. */
async function run({ answers = 100, asked = ASKED, nowMs = NOW, readsAgain = false } = {}) {
  const stop = new AbortController();
  const requests: string[] = [];
  const seen: string[] = [];
  const journal = await openJournal({
    ...{ folder, asked, nowMs, readsAgain },
    onPage: ({ projectId, operations }) => void seen.push(`${projectId} ${operations[0]?.createdAtMs}`),
  });
  const fromJournal = seen.length;
  const { states } = await readOperations({
    api: {
      async operationsFrom({ projectId }, cursor) {
        if (requests.length === answers) stop.abort();
        requests.push(`${projectId} ${cursor ?? 0}`);
        const page = Number(cursor ?? 0);
        const one = {
          projectId,
          createdAtMs: NOW - page * HOUR,
          action: 'start_compute',
          status: 'finished',
        } as Operation;
        return { ok: true, value: { operations: [one], cursor: page < 2 ? String(page + 1) : undefined } };
      },
    },
    projects: ['a', 'b'].map((projectId) => ({ account: 'default', projectId })),
    ...{ sinceMs: 0, nowMs, monotonicMs: () => 0, concurrency: 1, signal: stop.signal, resume: journal.states },
    onPage(projectId, operations, _complete, state) {
      seen.push(`${projectId} ${operations[0]?.createdAtMs}`);
      journal.add({ projectId, state, operations: [...operations] });
    },
  });
  if (!stop.signal.aborted) journal.end();
  const isRead = [...states.values()].every(({ read }) => read === 'all');
  return { requests: requests.slice(0, answers), seen, fromJournal, isRead, earlierToMs: journal.earlierToMs };
}

describe('a reading of operations that was cut off', () => {
  it('is gone on with where it was, page by page', async () => {
    const first = await run({ answers: 5 });
    expect(first).toMatchObject({ isRead: false, requests: ['a 0', 'b 0', 'a 1', 'b 1', 'a 2'] });
    const second = await run({ nowMs: NOW + HOUR });
    expect(second).toMatchObject({ requests: ['b 2'], fromJournal: 5, isRead: true, earlierToMs: NOW });
    expect(second.seen.toSorted()).toEqual(
      ['a', 'b'].flatMap((id) => [2, 1, 0].map((page) => `${id} ${NOW - page * HOUR}`)).toSorted(),
    );
  });

  it('loses a line that was cut off, and no more', async () => {
    await run({ answers: 3 });
    appendFileSync(join(folder, 'operations-being-read.jsonl'), '{"projectId":"b","state":{"pag');
    expect(await run({ answers: 1 })).toMatchObject({ fromJournal: 3, requests: ['a 2'] });
    expect(await run()).toMatchObject({ fromJournal: 4, requests: ['b 1', 'b 2'] });
  });

  it.each([
    ['something else is asked', { asked: { ...ASKED, days: 60 } }],
    ['it is a day old', { nowMs: NOW + 25 * HOUR }],
    ['it is from the future', { nowMs: NOW - HOUR }],
  ])('begins anew where %s', async (_why, options) => {
    await run({ answers: 3 });
    expect(await run(options)).toMatchObject({ fromJournal: 0, isRead: true, earlierToMs: undefined });
  });

  it('is for a day what other commands know of the operations, once it has ended', async () => {
    const lately = (asked: { apiUrl: string; group: string }, nowMs: number) =>
      operationsReadLately({ folder, asked, nowMs });
    const { apiUrl, group } = ASKED;
    await run({ answers: 2 });
    expect(await lately({ apiUrl, group }, NOW)).toBeUndefined();
    await run();
    const { operations, readAtMs } = (await lately({ apiUrl, group }, NOW + HOUR)) ?? {};
    expect(readAtMs).toBe(NOW);
    const kept = operations?.get('a');
    expect(kept).toMatchObject({ readAtMs: NOW, oldestMs: NOW - 2 * HOUR, end: 'complete' });
    expect(kept?.operations.map(({ createdAtMs }) => createdAtMs)).toEqual([0, 1, 2].map((page) => NOW - page * HOUR));
    expect([...(operations?.keys() ?? [])].sort()).toEqual(['a', 'b']);
    (await openJournal({ folder, asked: ASKED, nowMs: NOW + HOUR, onPage: () => {} })).end();
    expect((await lately({ apiUrl, group }, NOW + HOUR))?.readAtMs).toBe(NOW);
    expect(await lately({ apiUrl, group: 'another' }, NOW + HOUR)).toBeUndefined();
    expect(await lately({ apiUrl, group }, NOW + 25 * HOUR)).toBeUndefined();
    expect(await run({ nowMs: NOW + HOUR })).toMatchObject({ fromJournal: 0 });
  });

  it('serves the same command for five minutes once it has ended, unless that reads again', async () => {
    await run();
    const soon = { nowMs: NOW + 4 * 60_000 };
    expect(await run(soon)).toMatchObject({ requests: [], fromJournal: 6, isRead: true, earlierToMs: NOW });
    expect(await run(soon)).toMatchObject({ requests: [], fromJournal: 6 });
    expect(await run({ nowMs: NOW + 5 * 60_000 })).toMatchObject({ fromJournal: 0, earlierToMs: undefined });
    expect(await run({ nowMs: NOW + 6 * 60_000, readsAgain: true })).toMatchObject({ fromJournal: 0 });
  });

  it('works where nothing can be kept', async () => {
    writeFileSync(join(parent, 'file'), '');
    folder = join(parent, 'file', 'folder');
    expect(await run()).toMatchObject({ isRead: true, fromJournal: 0 });
  });
});
