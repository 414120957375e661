import { expect, test } from 'vitest';
import { createOperationDurations } from '../../src/app/operations/follow.ts';
import type { Operation } from '../../src/ports/control-api.ts';

const ended = (action: string, durationMs: number, more: Partial<Operation> = {}): Operation => ({
  ...{ operationId: 'op-1', projectId: 'p-1', computeId: 'ep-1', action, status: 'finished', outcome: 'succeeded' },
  ...{ createdAtMs: 50_000, updatedAtMs: 50_000 + durationMs, failuresCount: 0, ...more },
});
const open = (action: string, startedAtMs = 100_000) => ({ operationId: `op-${action}`, action, startedAtMs });

test('what is not known yet takes two seconds; what has ended takes as long again, and a little more', () => {
  const durations = createOperationDurations();
  expect(durations.expectedEndMs([open('start_compute')])).toBe(102_000);
  durations.learn(ended('start_compute', 4_000));
  expect(durations.expectedEndMs([open('start_compute')])).toBe(104_250);
  expect(durations.expectedEndMs([open('apply_config')])).toBe(102_000);
});

test('a change has ended when the last of its operations has', () => {
  const durations = createOperationDurations();
  durations.learn(ended('apply_config', 100));
  durations.learn(ended('start_compute', 3_000));
  expect(durations.expectedEndMs([open('apply_config'), open('start_compute')])).toBe(103_250);
});

test('the median of the last five counts, by the time that the platform tells where it tells one', () => {
  const durations = createOperationDurations();
  durations.learn(ended('start_compute', 1_000, { totalDurationMs: 9_000 }));
  expect(durations.expectedEndMs([open('start_compute')])).toBe(109_250);
  for (const durationMs of [1_000, 8_000, 2_000, 1_000, 3_000]) durations.learn(ended('start_compute', durationMs));
  expect(durations.expectedEndMs([open('start_compute')])).toBe(102_250);
});

test('one that failed or still runs teaches nothing, and one that took for ever not much', () => {
  const durations = createOperationDurations();
  durations.learn(ended('start_compute', 100, { outcome: 'failed', status: 'failed' }));
  durations.learn(ended('start_compute', 100, { outcome: 'pending', status: 'running' }));
  expect(durations.expectedEndMs([open('start_compute')])).toBe(102_000);
  durations.learn(ended('start_compute', 600_000));
  expect(durations.expectedEndMs([open('start_compute')])).toBe(110_000);
});
