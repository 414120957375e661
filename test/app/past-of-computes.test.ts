import { expect, it } from 'vitest';
import { pastOfComputes } from '../../src/app/recommend/facts.ts';
import { createOperationLog } from '../../src/domain/awake/operation-log.ts';
import { aCompute } from '../support/builders.ts';

const DAY_MS = 86_400_000;

it('the usage of a project is that of a compute only if the project has no other one, and had none', () => {
  const periodOf = (others: { present?: string; past?: string }) => {
    const compute = aCompute();
    const { projectId } = compute;
    const log = createOperationLog();
    const started = { action: 'start_compute', status: 'finished', createdAtMs: DAY_MS };
    for (const computeId of [compute.computeId, others.past])
      if (computeId !== undefined) log.project(projectId).add({ ...started, computeId });
    const computes = [compute, ...(others.present === undefined ? [] : [aCompute({ computeId: others.present })])];
    const period = { fromMs: 0, toMs: 30 * DAY_MS, cuHours: 60, awakeHours: 50 };
    const read = { usage: [], fromMs: 0, toMs: 2 * DAY_MS, pricing: () => ({}) };
    return pastOfComputes({ computes, log, ...read, periods: new Map([[projectId, period]]) })[0]?.period;
  };
  expect(periodOf({})).toEqual({ cuHours: 60, awakeHours: 50 });
  expect(periodOf({ present: 'ep-other' })).toBeUndefined();
  expect(periodOf({ past: 'ep-deleted' })).toBeUndefined();
});
