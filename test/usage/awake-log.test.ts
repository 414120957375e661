import { describe, expect, it } from 'vitest';
import { storeOperations } from '../../src/app/usage/kept-operations.ts';
import { createAwakeLog } from '../../src/app/usage/usage-rounds.ts';
import type { ControlApi, Operation } from '../../src/ports/control-api.ts';
import { aCompute } from '../support/builders.ts';
import { memoryUsageStore } from '../support/memory-usage.ts';
import { DAY_MS, HOUR_MS, START_MS } from './support.ts';

const PROJECT = { account: 'main', projectId: 'p-one', name: 'one', regionId: 'r', updatedAtMs: 0 };
const compute = aCompute({ projectId: 'p-one', state: 'idle', createdAtMs: 0 });

/** Awake for an hour until so many milliseconds before the start; newest first, as the control API lists them. */
function operations(...agoMs: number[]): Operation[] {
  return agoMs.flatMap((ago) =>
    (['suspend_compute', 'start_compute'] as const).map((action, index): Operation => {
      const createdAtMs = START_MS - ago - index * HOUR_MS;
      return {
        ...{ operationId: `${action} ${ago}`, projectId: 'p-one', computeId: compute.computeId, action },
        ...{
          status: 'finished',
          createdAtMs,
          updatedAtMs: createdAtMs + 500,
          totalDurationMs: 500,
          outcome: 'succeeded',
          failuresCount: 0,
        },
      };
    }),
  );
}

function start(answer: ControlApi['operationsFrom']) {
  let [asked, monotonicMs] = [0, 0];
  const store = memoryUsageStore();
  const operationsFrom: ControlApi['operationsFrom'] = (...args) => {
    asked += 1;
    return answer(...args);
  };
  const awake = createAwakeLog({ api: { operationsFrom }, store, clock: { monotonicMs: () => (monotonicMs += 1) } });
  const refresh = (nowMs = START_MS) => awake.refresh([PROJECT], nowMs, new AbortController().signal);
  return { awake, refresh, store, asked: () => asked };
}

describe('when computes were awake', () => {
  it('is read once a day, for two weeks', async () => {
    const listed = operations(DAY_MS, 2 * DAY_MS, 20 * DAY_MS);
    const { awake, refresh, asked } = start(async () => ({
      ok: true,
      value: { operations: listed, cursor: undefined },
    }));
    expect(awake.historyOf(compute)).toBeUndefined();
    expect([await refresh(), await refresh(START_MS + DAY_MS - 1), asked()]).toEqual([true, false, 1]);
    const history = awake.historyOf(compute);
    expect(history?.fromMs).toBe(START_MS - 14 * DAY_MS);
    expect(history?.intervals.map(({ endMs }) => (START_MS - endMs) / DAY_MS)).toEqual([2, 1]);
    expect([await refresh(START_MS + DAY_MS), asked()]).toEqual([true, 2]);
  });

  it('is taken from what is kept of operations, up to when these were read', async () => {
    const { awake, refresh, store, asked } = start(async () => ({
      ok: true,
      value: { operations: operations(5 * DAY_MS), cursor: undefined },
    }));
    const readAtMs = START_MS - HOUR_MS;
    const kept = { readAtMs, oldestMs: 0, end: 'complete' as const, operations: operations(DAY_MS) };
    await storeOperations(store, 'p-one', kept);
    expect([await refresh(), asked()]).toEqual([true, 0]);
    const history = awake.historyOf(compute);
    expect([history?.fromMs, history?.toMs]).toEqual([readAtMs - 14 * DAY_MS, readAtMs]);
    expect(history?.intervals.map(({ endMs }) => (START_MS - endMs) / DAY_MS)).toEqual([1]);
    expect([await refresh(START_MS + 3 * DAY_MS), asked()]).toEqual([true, 1]);
  });

  it('is unknown of a project that cannot be read', async () => {
    const error = { code: 'unavailable', route: 'operations', message: 'not now' } as const;
    const { awake, refresh } = start(async () => ({ ok: false, error }));
    await refresh();
    expect(awake.historyOf(compute)).toBeUndefined();
  });
});
