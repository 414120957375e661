import { expect, it, vi } from 'vitest';
import { systemClock } from '../../src/adapters/clock/system-clock.ts';
import type { CurrentRules } from '../../src/app/rules.ts';
import { recordHistory, repeatsOf } from '../../src/app/telemetry/history.ts';
import type { Reason } from '../../src/domain/compute/reasons.ts';
import type { HistoryEntry } from '../../src/domain/records/history.ts';
import type { ComputeEvent } from '../../src/ports/compute-events.ts';
import { aCompute } from '../support/builders.ts';
import { memoryLog } from '../support/memory-log.ts';

const compute = aCompute();
const reasons = [{ code: 'degraded', message: '3 failures, last: 409' }];
const EVENTS: ComputeEvent[] = [
  { kind: 'degraded', compute, desired: { maxCu: 4 }, failures: 3, message: '409' },
  { kind: 'manual_change', compute, group: 'size', applied: { maxCu: 4 }, message: 'by hand: 4 → 2 CU' },
];

const action = {
  ...{ kind: 'update' as const, fields: { maxCu: 4 }, disconnects: true, raises: true },
  ...{ policy: 'office-hours', priority: 0 },
};
const WRITE: ComputeEvent = { kind: 'write_ended', compute, action, reasons: [], outcome: 'applied', operations: [] };

function remembering(appendHistory: (entries: readonly HistoryEntry[]) => Promise<void>) {
  const log = memoryLog();
  const clock = systemClock();
  const memory = recordHistory({
    ...{ store: { appendHistory }, log, clock },
    rules: { current: { policies: { set: { hash: 'abc' } }, revision: 'commit-1' } } as CurrentRules,
  });
  return { log, memory };
}

it('tells what happened, by which policies, and leaves writes to the audit', async () => {
  const stored: HistoryEntry[] = [];
  const { memory } = remembering(async (entries) => void stored.push(...entries));
  for (const event of [...EVENTS, WRITE]) memory.remember(event);
  await memory.close();
  const usual = { setHash: 'abc', revision: 'commit-1', to: { maxCu: 4 } };
  expect(stored).toMatchObject([
    { ...usual, kind: 'operation', reasons },
    { ...usual, kind: 'manual', from: { maxCu: 4 }, to: { maxCu: 2 } },
  ]);
});

it('carries on while the store is away, and says so once', async () => {
  let isUnavailable = true;
  const stored: HistoryEntry[] = [];
  const { memory, log } = remembering(async (entries) => {
    if (isUnavailable) throw new Error('away');
    stored.push(...entries);
  });
  for (const event of EVENTS) memory.remember(event);
  await vi.waitFor(() => expect(log.lines).toHaveLength(1), 10_000);
  isUnavailable = false;
  for (const event of EVENTS) memory.remember(event);
  await memory.close();
  expect(stored).toHaveLength(2);
  expect(log.lines).toHaveLength(1);
});

it('knows after a restart what it has told of what waits, and tells again what is new', async () => {
  const stored: HistoryEntry[] = [];
  const { memory } = remembering(async (entries) => void stored.unshift(...entries));
  const held = (maxCu: number): ComputeEvent => ({
    kind: 'held_back',
    compute,
    plan: {
      ...{ verdict: 'wait', actions: [], why: [] },
      held: [{ ...action, fields: { maxCu } }],
      waiting: [{ why: reasons[0] as Reason, gate: { code: 'observe', message: 'ebb runs in observe mode' } }],
    },
  });
  memory.remember(held(4));
  await memory.close();
  const store = { history: async () => JSON.parse(JSON.stringify(stored)) };
  const isRepeated = await repeatsOf(store);
  expect([held(4), held(4)].map(isRepeated)).toEqual([true, false]);
  const [told] = stored as [HistoryEntry];
  const other = { ...told, reasons: [...told.reasons, ...told.reasons], to: told.to ?? {} };
  const after = (to: HistoryEntry['to']) =>
    repeatsOf({ history: async () => [{ ...told, kind: 'write', to }, other] as HistoryEntry[] });
  expect([held(4)].map(await after({ suspendTimeoutSeconds: 60 }))).toEqual([true]);
  expect([held(4)].map(await after({ maxCu: 4 }))).toEqual([false]);
  expect([held(8)].map(await repeatsOf(store))).toEqual([false]);
  expect([WRITE].map(await repeatsOf(store))).toEqual([false]);
  const away = async () => Promise.reject(new Error('away'));
  expect([held(4)].map(await repeatsOf({ history: away }))).toEqual([false]);
});
