import { describe, expect, it } from 'vitest';
import { createStoredTimes, isCorrected } from '../../src/app/group/stored-times.ts';
import type { Store } from '../../src/ports/store.ts';
import { aRecord, at } from '../support/builders.ts';
import { memoryLog } from '../support/memory-log.ts';

const NOW_MS = at('2026-11-21T10:00:00Z');
const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;

function aStore() {
  const stored = { lastDecidedAtMs: NOW_MS };
  const said = { createdAtMs: NOW_MS };
  const monotonic = { ms: 0 };
  const put: unknown[] = [];
  const gauge: number[] = [];
  const log = memoryLog();
  const metrics = {
    increment() {},
    set: (_: string, __: object, value: number) => gauge.push(value),
    clear() {},
    observe() {},
  };
  const times = createStoredTimes({
    clock: { now: () => NOW_MS + monotonic.ms, monotonicMs: () => monotonic.ms },
    telemetry: { log, metrics },
  });
  const hold = () => ({ id: 'h-1', ...said, expiresAtMs: said.createdAtMs + DAY_MS });
  const store = times.correcting({
    records: async () => new Map([['ep-one', aRecord(stored)]]),
    overrides: async () => ({
      holds: { entries: [hold()], endedIds: new Set() },
      freezes: { entries: [], endedIds: new Set() },
    }),
    putHold: async (one: unknown) => void put.push(one),
  } as unknown as Store);
  return { times, store, stored, said, monotonic, put, gauge, log };
}

describe('a store in which a clock that was ahead has written', () => {
  it('gives records of now, to be written back, and is logged once, shown and counted until it is corrected', async () => {
    const { times, store, stored, monotonic, gauge, log } = aStore();
    const read = async () => (await store.records('p-one')).get('ep-one');
    expect(isCorrected(await read())).toBe(false);
    expect(times.problem()).toBeUndefined();
    stored.lastDecidedAtMs = NOW_MS + DAY_MS;
    for (let reads = 0; reads < 3; reads += 1) {
      const record = await read();
      // The same at each reading: who compares two of them must find that nobody has written.
      expect([record?.lastDecidedAtMs, isCorrected(record)]).toEqual([NOW_MS, true]);
      monotonic.ms += 10;
    }
    expect(log.lines).toMatchObject([{ level: 'error', fields: { event: 'ebb.stored_time_ahead', ahead_ms: DAY_MS } }]);
    expect(times.problem()).toMatch(/^a stored time of ep-one is 1440 min ahead of this machine's clock: /);
    expect(gauge.at(-1)).toBe(DAY_MS / 1000);
    stored.lastDecidedAtMs = NOW_MS;
    monotonic.ms += 4 * MINUTE_MS;
    await read();
    expect(times.problem()).toBeDefined();
    monotonic.ms += 2 * MINUTE_MS;
    expect([times.problem(), gauge.at(-1)]).toEqual([undefined, 0]);
  });

  it('makes a hold active from now on, for as long as it was meant to be, and stores it so', async () => {
    const { store, said, put } = aStore();
    said.createdAtMs = NOW_MS + DAY_MS;
    const right = { id: 'h-1', createdAtMs: NOW_MS, expiresAtMs: NOW_MS + DAY_MS };
    expect((await store.overrides(NOW_MS)).holds.entries).toEqual([right]);
    expect(put).toEqual([right]);
  });
});
