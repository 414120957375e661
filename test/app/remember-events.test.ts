import { expect, it, vi } from 'vitest';
import { systemClock } from '../../src/adapters/clock/system-clock.ts';
import { recordHistory } from '../../src/app/telemetry/history.ts';
import type { HistoryEntry } from '../../src/domain/records/history.ts';
import type { ComputeEvent } from '../../src/ports/compute-events.ts';
import { aCompute } from '../support/builders.ts';
import { memoryLog } from '../support/memory-log.ts';

const compute = aCompute();
const action = {
  ...{ kind: 'update' as const, fields: { maxCu: 4 }, disconnects: true, raises: true },
  ...{ policy: 'office-hours', priority: 0 },
};
const reasons = [{ code: 'window_open' as const, message: 'size 2 → 4 CU' }];
const WRITES: ComputeEvent[] = [
  { kind: 'write_started', compute, action, reasons },
  { kind: 'write_ended', compute, action, reasons, outcome: 'applied', operations: [] },
  { kind: 'write_ended', compute, action, reasons, outcome: 'locked', operations: [] },
];

function remembering(appendHistory: (entries: readonly HistoryEntry[]) => Promise<void>) {
  const log = memoryLog();
  const clock = systemClock();
  const memory = recordHistory({
    ...{ store: { appendHistory }, log, clock },
    setHash: () => 'abc',
    revision: () => 'commit-1',
  });
  return { log, memory };
}

it('tells each write once, with what was and what came, and what became of it', async () => {
  const stored: HistoryEntry[] = [];
  const { memory } = remembering(async (entries) => void stored.push(...entries));
  for (const event of WRITES) memory.remember(event);
  await memory.close();
  const usual = {
    kind: 'write',
    policy: 'office-hours',
    setHash: 'abc',
    revision: 'commit-1',
    from: { maxCu: 2 },
    to: { maxCu: 4 },
  };
  expect(stored).toMatchObject([usual, { ...usual, reasons: [...reasons, { code: 'locked' }] }]);
});

it('carries on while the store is away, and says so once', async () => {
  let isAway = true;
  const stored: HistoryEntry[] = [];
  const { memory, log } = remembering(async (entries) => {
    if (isAway) throw new Error('away');
    stored.push(...entries);
  });
  for (const event of WRITES) memory.remember(event);
  await vi.waitFor(() => expect(log.lines).toHaveLength(1), 10_000);
  isAway = false;
  for (const event of WRITES) memory.remember(event);
  await memory.close();
  expect(stored).toHaveLength(2);
  expect(log.lines).toHaveLength(1);
});
