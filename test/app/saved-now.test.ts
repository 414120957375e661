import { expect, it } from 'vitest';
import { createFleet } from '../../src/app/fleet/fleet.ts';
import { fleetPage } from '../../src/app/operator/fleet-page.ts';
import type { Compute, ComputeSettings } from '../../src/domain/compute/compute.ts';
import { evaluate } from '../../src/domain/evaluate/evaluate.ts';
import { aCompute, aRecord, aSchedule, at, currentRules } from '../support/builders.ts';

const NOON = at('2026-03-02T12:00:00Z');
const ALWAYS_BIG: ComputeSettings = { minCu: 4, maxCu: 8, suspendTimeoutSeconds: -1 };

/** What the fleet page says is saved by computes, each with its baseline and what ebb has set. */
async function savedNow(...given: [computeId: string, compute: Partial<Compute>, changed: Partial<ComputeSettings>][]) {
  const rules = currentRules(aSchedule());
  const { policies } = rules.current;
  const fleet = createFleet({ clock: { monotonicMs: () => 0 } as Parameters<typeof createFleet>[0]['clock'] });
  for (const [computeId, settings, lastApplied] of given) {
    const compute = aCompute({ computeId, state: 'active', ...settings });
    const record = aRecord({ baseline: ALWAYS_BIG, lastApplied });
    const situation = { policies, nowMs: NOON, mode: 'enforce', projectBusy: false } as const;
    fleet.putEvaluated({ ...evaluate({ ...situation, compute, record }), compute, record });
  }
  const parts = {
    ...{ store: { holds: async () => [], freezes: async () => [] }, now: async () => NOON },
    daemon: {
      ...{ fleet, mode: 'enforce', policies: () => policies, owners: () => [], rules: () => rules.current },
      week: { of: async (subjects: readonly object[]) => subjects.map(() => ({ state: 'not_yet' })) },
    },
  } as unknown as Parameters<typeof fleetPage>[0];
  return (await fleetPage(parts, { q: '', page: 1, sort: 'compute' })).saved_now;
}

const LOWERED = { minCu: 1, maxCu: 2 };
const RAISED = { minCu: 5, maxCu: 10 };

it('what is saved at this moment is the sum over the computes, each with its own low end', async () => {
  // 3 to 6 CU saved, and 1 to 2 CU added.
  expect(await savedNow(['ep-1', LOWERED, LOWERED], ['ep-2', RAISED, RAISED])).toEqual({
    ...{ computes: 2, low_cu: 1, high_cu: 5 },
  });
});

it('a compute that sleeps because of its timeout saves its whole baseline', async () => {
  const sleeps = { state: 'idle', suspendTimeoutSeconds: 300 } as const;
  expect(await savedNow(['ep-1', sleeps, { suspendTimeoutSeconds: 300 }])).toEqual({
    ...{ computes: 1, low_cu: 4, high_cu: 8 },
  });
});

it('a compute to which ebb has set nothing is not counted, such as one that is frozen or guarded before its first change', async () => {
  expect(await savedNow(['ep-1', LOWERED, {}])).toEqual({ computes: 0, low_cu: 0, high_cu: 0 });
  expect(await savedNow(['ep-1', LOWERED, {}], ['ep-2', LOWERED, LOWERED])).toMatchObject({ computes: 1, low_cu: 3 });
  expect(await savedNow()).toEqual({ computes: 0, low_cu: 0, high_cu: 0 });
});
