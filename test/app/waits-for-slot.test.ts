import { expect, it } from 'vitest';
import { createFleet } from '../../src/app/fleet/fleet.ts';
import { waitsForSlot } from '../../src/app/reconcile/waits-for-slot.ts';
import type { Compute } from '../../src/domain/compute/compute.ts';
import { evaluate } from '../../src/domain/evaluate/evaluate.ts';
import type { Project } from '../../src/ports/control-api.ts';
import { aCompute, aRecord, aSchedule, at, currentRules, FREE_SLOTS } from '../support/builders.ts';

const EIGHT = at('2026-03-02T08:00:00Z');
const awake = aCompute({ minCu: 0.25, maxCu: 1, state: 'active' });

/** Whether the project waits, and which computes were asked for. */
async function waits(computes: readonly Compute[], { isFree = false, frozen = false } = {}) {
  const rules = currentRules(aSchedule());
  const clock = { now: () => EIGHT, monotonicMs: () => EIGHT };
  const fleet = createFleet({ clock } as unknown as Parameters<typeof createFleet>[0]);
  const { account, projectId, projectName: name, regionId } = awake;
  const project = { account, projectId, name, regionId, updatedAtMs: 0 } as Project;
  fleet.cache({ project, computes, unreadable: [], readAtMs: EIGHT, readAtMonotonicMs: EIGHT });
  for (const compute of computes) {
    const situation = { policies: rules.current.policies, compute, record: aRecord(), nowMs: EIGHT };
    const evaluated = evaluate({ ...situation, mode: 'enforce', projectBusy: false });
    fleet.putEvaluated({ compute, record: aRecord(), ...evaluated });
  }
  const freeze = {
    ...{ id: 'f', owner: 'ann', reason: 'no', select: 'all', allowRaise: false },
    ...{ createdAtMs: EIGHT - 1, expiresAtMs: EIGHT + 1 },
  };
  const asked: string[] = [];
  const admits = async (_rules: unknown, computeId: string) => asked.push(computeId) > 0 && isFree;
  const deps = {
    ...{ clock, fleet, rules, mode: 'enforce', store: {}, samples: { historyOf: () => undefined } },
    overrides: {
      refresh: async () => {},
      snapshot: () => ({ holds: [], freezes: frozen ? [freeze] : [], revision: 1 }),
    },
    slots: { ...FREE_SLOTS, admits },
  };
  return [await waitsForSlot(deps as unknown as Parameters<typeof waitsForSlot>[0], projectId), asked];
}

it('a project whose restart would be refused a slot waits without a reading', async () => {
  expect(await waits([awake])).toEqual([true, [awake.computeId]]);
  expect(await waits([awake], { isFree: true })).toEqual([false, [awake.computeId]]);
});

it('a project goes on if it has anything else to do, or nothing', async () => {
  const asleep = { ...awake, computeId: 'ep-asleep', state: 'idle' as const };
  const finished = { ...awake, minCu: 1, maxCu: 4 };
  expect((await waits([awake, asleep]))[0]).toBe(false);
  expect(await waits([finished])).toEqual([false, []]);
  expect(await waits([])).toEqual([false, []]);
});

it('what keeps the change back now is seen at once', async () => {
  expect((await waits([awake], { frozen: true }))[0]).toBe(false);
});
