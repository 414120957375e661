import { describe, expect, it } from 'vitest';
import { deleteReadings } from '../../src/app/readings/read-readings.ts';
import { OPERATIONS_KEY } from '../../src/app/readings/reading.ts';
import {
  branchesOf,
  covers,
  decodeOperations,
  deleteOldOperations,
  encodeOperations,
  type KeptOperations,
  readKeptOperations,
  readPlan,
  spanOf,
  storeOperations,
  storePlan,
  updateOperations,
} from '../../src/app/usage/kept-operations.ts';
import type { OperationRow } from '../../src/domain/awake/operation-log.ts';
import { seededRandom } from '../../src/domain/random.ts';
import type { ApiResult, OperationsPage } from '../../src/ports/control-api.ts';
import { memoryDocumentStore } from '../support/memory-documents.ts';
import { memoryUsageStore } from '../support/memory-usage.ts';

const NOW = Date.parse('2026-03-02T12:00:00Z');
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const PROJECT = { account: 'default', projectId: 'p-one', name: 'one', regionId: 'r', updatedAtMs: 0 };

/** A ping every so often, each a start and, soon after, a suspend; newest first. */
function pings(everyMs: number, fromMs: number, toMs: number, computeId = 'ep-one'): OperationRow[] {
  const random = seededRandom(7);
  const all: OperationRow[] = [];
  for (let atMs = toMs - everyMs; atMs >= fromMs; atMs -= everyMs) {
    for (const [action, later] of [
      ['suspend_compute', 60_000],
      ['start_compute', 0],
    ] as const) {
      const createdAtMs = 1000 * Math.floor((atMs + later + random() * 5_000) / 1000);
      const totalDurationMs = 300 + Math.floor(random() * 600);
      all.push({ projectId: 'p-one', computeId, action, status: 'finished', createdAtMs, totalDurationMs });
    }
  }
  return all.sort((a, b) => b.createdAtMs - a.createdAtMs);
}

/** A control API with these operations, in pages. */
function apiWith(all: () => readonly OperationRow[], pageSize = 1000) {
  const asked: string[] = [];
  return {
    asked,
    async operationsFrom(_: unknown, cursor: string | undefined): Promise<ApiResult<OperationsPage>> {
      asked.push(cursor ?? 'newest');
      const from = Number(cursor ?? 0);
      const operations = all().slice(from, from + pageSize);
      const end = from + operations.length;
      return { ok: true, value: { operations, cursor: end < all().length ? String(end) : undefined } };
    },
  };
}

const always = (operations: readonly OperationRow[]) => () => operations;

function update(api: ReturnType<typeof apiWith>, store = memoryUsageStore(), nowMs = NOW, computes = 1) {
  const signal = new AbortController().signal;
  return updateOperations({ api, store, project: PROJECT, computes, nowMs, signal, monotonicMs: () => 0 });
}

async function updated(...args: Parameters<typeof update>): Promise<KeptOperations> {
  const read = await update(...args);
  if (!read.ok) throw new Error(read.error.message);
  return read.value;
}

describe('kept operations', () => {
  it('are decoded as they were, but for parts of seconds', async () => {
    const kept: KeptOperations = {
      ...{ readAtMs: NOW, oldestMs: NOW - DAY, end: 'days' },
      operations: [
        { projectId: 'p-one', action: 'create_branch', status: 'running', createdAtMs: NOW + 2_000 },
        ...pings(HOUR, NOW - DAY, NOW),
      ],
      branches: new Map([['br-1', { name: 'main', roles: ['default', 'protected'] as const }]]),
    };
    const bytes = await encodeOperations(kept);
    const { branches, ...rest } = kept;
    expect(await decodeOperations('p-one', bytes)).toEqual(rest);
    expect(branchesOf(bytes)).toEqual(branches);
    expect(branchesOf(await encodeOperations({ ...kept, branches: 'refused' }))).toBe('refused');
    expect(branchesOf(await encodeOperations(rest))).toBeUndefined();
  });

  it('count as absent when they are damaged or of another version', async () => {
    const bytes = await encodeOperations(await updated(apiWith(always(pings(HOUR, NOW - DAY, NOW)))));
    const broken = Uint8Array.from(bytes);
    broken[40] = (broken[40] ?? 0) ^ 1;
    expect(await decodeOperations('p-one', broken)).toBeUndefined();
    expect(await decodeOperations('p-one', bytes.subarray(0, 60))).toBeUndefined();
    expect(spanOf(Uint8Array.from(bytes, (byte, index) => (index === 0 ? byte + 1 : byte)))).toBeUndefined();
    expect(spanOf(bytes.subarray(0, 5))).toBeUndefined();
  });

  it('take at most 60 KB for a compute that is pinged every five minutes, 4 KB for one every two hours', async () => {
    const bytesOf = async (everyMs: number) => {
      const kept = await updated(apiWith(always(pings(everyMs, NOW - 60 * DAY, NOW))));
      return (await encodeOperations(kept)).length;
    };
    expect(await bytesOf(5 * MINUTE)).toBeLessThan(60_000);
    expect(await bytesOf(2 * HOUR)).toBeLessThan(4_000);
  });

  it('are the newest where there are too many, and serve those who ask for no more days', async () => {
    const kept = await updated(apiWith(always(pings(MINUTE, NOW - 28 * DAY, NOW))));
    expect([kept.operations.length, kept.end]).toEqual([20_000, 'most']);
    expect(covers(kept, NOW - 28 * DAY, NOW)).toBe(true);
    expect(covers(kept, NOW - 29 * DAY, NOW)).toBe(false);
  });

  it('are read in so many pages as are kept, also where those end before what was known', async () => {
    const store = memoryUsageStore();
    const before = await updated(apiWith(always(pings(HOUR, NOW - 60 * DAY, NOW - DAY))), store, NOW - DAY);
    await storeOperations(store, 'p-one', before);
    const api = apiWith(always(pings(1_000, NOW - DAY, NOW)));
    const kept = await updated(api, store);
    expect([api.asked.length, kept.operations.length, kept.end]).toEqual([20, 20_000, 'most']);
    expect(kept.oldestMs).toBeGreaterThan(NOW - DAY);
    const stepwise = await updated(apiWith(always(pings(1_000, NOW - DAY, NOW)), 100), store);
    expect([stepwise.operations.length, stepwise.end]).toEqual([2_000, 'most']);
  });

  it('serve for two days, and for no longer time than was read', async () => {
    const kept = await updated(apiWith(always(pings(HOUR, NOW - 60 * DAY, NOW))));
    expect(kept.end).toBe('days');
    expect(covers(kept, NOW - 28 * DAY, NOW + 2 * DAY)).toBe(true);
    expect(covers(kept, NOW - 28 * DAY, NOW + 2 * DAY + 1)).toBe(false);
    expect(covers(kept, NOW - 60 * DAY, NOW)).toBe(false);
    const all = await updated(apiWith(always(pings(HOUR, NOW - 3 * DAY, NOW))));
    expect([all.end, covers(all, NOW - 180 * DAY, NOW)]).toEqual(['complete', true]);
  });

  it.each([
    ['20m', 20 * MINUTE, 1000],
    ['20m, in small pages', 20 * MINUTE, 250],
    ['3h', 3 * HOUR, 1000],
  ])(
    'of a ping every %s are read on from what is kept, and are then what a reading of everything gives',
    async (_, everyMs, pageSize) => {
      const store = memoryUsageStore();
      const everything = pings(everyMs, NOW - 40 * DAY, NOW + 4 * DAY);
      const asked: number[] = [];
      for (let day = 0; day < 4; day += 1) {
        const nowMs = NOW + day * DAY;
        const listed = everything.filter(({ createdAtMs }) => createdAtMs <= nowMs);
        const api = apiWith(() => listed, pageSize);
        const kept = await updated(api, store, nowMs);
        const whole = await updated(
          apiWith(() => listed),
          memoryUsageStore(),
          nowMs,
        );
        const ofDays = (operations: readonly OperationRow[]) =>
          operations.filter(({ createdAtMs }) => createdAtMs >= nowMs - 28 * DAY);
        expect(ofDays(kept.operations)).toEqual(ofDays(whole.operations));
        if (pageSize === 1000) expect(kept).toEqual(whole);
        asked.push(api.asked.length);
        await storeOperations(store, 'p-one', kept);
      }
      const pagesOfDay = Math.ceil((2 * (DAY + HOUR)) / everyMs / pageSize) + 1;
      expect(asked.slice(1).every((pages) => pages <= pagesOfDay)).toBe(true);
    },
  );

  it('are read again from an operation on that had not ended', async () => {
    const store = memoryUsageStore();
    const [newest, ...others] = pings(3 * HOUR, NOW - 40 * DAY, NOW);
    const before = others.map((one, index) => (index === 40 ? { ...one, status: 'running' } : one));
    const first = await updated(
      apiWith(() => before, 50),
      store,
    );
    await storeOperations(store, 'p-one', first);
    const second = await updated(
      apiWith(() => [newest as OperationRow, ...others], 50),
      store,
      NOW + HOUR,
    );
    expect(second.operations.filter(({ status }) => status !== 'finished')).toEqual([]);
    expect(second.operations[0]).toEqual(newest);
  });

  it('are not replaced where a project is gone or cannot be read', async () => {
    const error = (code: 'not_found' | 'unavailable') => ({
      ...apiWith(() => []),
      operationsFrom: async () => ({ ok: false as const, error: { code, route: '', message: '' } }),
    });
    expect(await update(error('not_found'))).toMatchObject({ ok: false, error: { code: 'not_found' } });
    expect(await update(error('unavailable'))).toMatchObject({ ok: false, error: { code: 'unavailable' } });
  });

  it('go with their project', async () => {
    const usage = memoryUsageStore();
    const kept = await updated(
      apiWith(() => []),
      usage,
    );
    for (const id of ['p-one', 'p-two', 'p-three', 'p-new']) await storeOperations(usage, id, kept);
    await storePlan(usage, 'default', 'launch');
    await deleteReadings({ ...memoryDocumentStore(), ...usage }, ['p-two']);
    await deleteOldOperations(usage, (id, readAtMs) => id !== 'p-one' && id !== 'p-new' && readAtMs <= NOW);
    expect([...(await readKeptOperations(usage, { sinceMs: 0, nowMs: NOW })).keys()].sort()).toEqual([
      'p-new',
      'p-one',
    ]);
    expect([await readPlan(usage, 'default'), await readPlan(usage, 'other')]).toEqual(['launch', undefined]);
    expect(await usage.usageAccounts()).toEqual([OPERATIONS_KEY]);
  });
});
