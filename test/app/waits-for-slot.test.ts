import { expect, it } from 'vitest';
import { createFleet } from '../../src/app/fleet/fleet.ts';
import { createSlotWaits } from '../../src/app/reconcile/waits-for-slot.ts';
import type { Compute } from '../../src/domain/compute/compute.ts';
import { evaluate } from '../../src/domain/evaluate/evaluate.ts';
import type { Project } from '../../src/ports/control-api.ts';
import { aCompute, aRecord, aSchedule, at, currentRules, FREE_SLOTS } from '../support/builders.ts';

const EIGHT = at('2026-03-02T08:00:00Z');
const awake = aCompute({ minCu: 0.25, maxCu: 1, state: 'active' });

function daemonWith(computes: readonly Compute[], { isFree = false, frozen = false } = {}) {
  const rules = currentRules(aSchedule());
  const time = { ms: EIGHT };
  const clock = { now: () => time.ms, monotonicMs: () => time.ms };
  const fleet = createFleet({ clock } as unknown as Parameters<typeof createFleet>[0]);
  const { account, projectId, projectName: name, regionId } = awake;
  const cache = (id: string, of: readonly Compute[]) => {
    const project = { account, projectId: id, name, regionId, updatedAtMs: 0 } as Project;
    fleet.cache({ project, computes: of, unreadable: [], readAtMs: EIGHT, readAtMonotonicMs: EIGHT });
    for (const compute of of) {
      const situation = { policies: rules.current.policies, compute, record: aRecord(), nowMs: EIGHT };
      const evaluated = evaluate({ ...situation, mode: 'enforce', projectBusy: false });
      fleet.putEvaluated({ compute, record: aRecord(), ...evaluated });
    }
  };
  cache(projectId, computes);
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
  const wakes: number[] = [];
  const queue = { add: async (_queue: string, { atMs }: { atMs: number }) => void wakes.push(atMs) };
  const waitsFor = createSlotWaits({ ...deps, queue } as unknown as Parameters<typeof createSlotWaits>[0]);
  return { waitsFor, cache, projectId, asked, time, wakes };
}

/** Whether the project waits, and which computes were asked for. */
async function waits(...given: Parameters<typeof daemonWith>) {
  const { waitsFor, projectId, asked } = daemonWith(...given);
  return [await waitsFor(projectId), asked];
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

it('however many triggers a waiting project has, it tries again once in five seconds', async () => {
  const { waitsFor, projectId, time, wakes } = daemonWith([awake]);
  for (const afterMs of [0, 1, 1_700, 4_999, 5_000, 5_001]) {
    time.ms = EIGHT + afterMs;
    expect(await waitsFor(projectId)).toBe(true);
  }
  expect(wakes).toEqual([EIGHT + 5_000, EIGHT + 10_000]);
});

it('a waiting project is read once a minute all the same: it may have been changed, or sleep by now', async () => {
  const { waitsFor, projectId, time } = daemonWith([awake]);
  const waitsAfter = async (afterMs: number) => {
    time.ms = EIGHT + afterMs;
    return waitsFor(projectId);
  };
  expect([await waitsAfter(0), await waitsAfter(60_000), await waitsAfter(60_001)]).toEqual([true, true, false]);
});

it('where very many projects wait, each tries less often', async () => {
  const { waitsFor, cache, time, wakes } = daemonWith([]);
  for (let index = 0; index < 600; index += 1) {
    cache(`p-${index}`, [{ ...awake, projectId: `p-${index}`, computeId: `ep-${index}` }]);
    await waitsFor(`p-${index}`);
  }
  expect([wakes[0], wakes.at(-1)]).toEqual([EIGHT + 5_000, EIGHT + 15_000]);
  time.ms = EIGHT + 15_000;
  await waitsFor('p-0');
  expect(wakes.at(-1)).toBe(EIGHT + 30_000);
});
