import { expect, it } from 'vitest';
import { createFleet } from '../../src/app/fleet/fleet.ts';
import { type InventoryDeps, takeInventory } from '../../src/app/fleet/inventory.ts';
import { createOutages } from '../../src/app/telemetry/outages.ts';
import type { EvaluatedCompute } from '../../src/domain/evaluate/evaluate.ts';
import { withReadyWaves } from '../../src/domain/policy/compiled-policies.ts';
import type { ReadyWaves } from '../../src/domain/policy/waves.ts';
import { aCompute, aRecord, currentRules } from '../support/builders.ts';
import { memoryLog } from '../support/memory-log.ts';

const NOW = 1_790_000_000_000;

/** How many projects one round reads in the background, if so many of its computes have a boundary at this instant, or each at its own. */
async function readAt(
  computes: number,
  nextBoundaryMs: number | ((index: number) => number),
  { account = 'a', readyWaves = [] }: { account?: string; readyWaves?: ReadyWaves[] } = {},
): Promise<number> {
  const clock = { now: () => NOW, monotonicMs: () => NOW };
  const fleet = createFleet({ clock } as never);
  const projects = Array.from({ length: computes }, (_, index) => {
    const project = { account: 'a', projectId: `p-${index}`, name: 'p', regionId: 'r', updatedAtMs: NOW - 600_000 };
    const compute = aCompute({ account, projectId: project.projectId, computeId: `ep-${index}` });
    fleet.cache({ project, computes: [compute], unreadable: [], readAtMs: NOW - 300_000, readAtMonotonicMs: 0 });
    const ownMs = typeof nextBoundaryMs === 'number' ? nextBoundaryMs : nextBoundaryMs(index);
    fleet.putEvaluated({ compute, record: aRecord(), nextBoundaryMs: ownMs } as EvaluatedCompute);
    return project;
  });
  const rules = currentRules();
  rules.current = { ...rules.current, policies: withReadyWaves(rules.current.policies, readyWaves) };
  let reads = 0;
  const telemetry = { log: memoryLog(), metrics: { increment() {}, set() {}, clear() {}, observe() {} } };
  const api = {
    async *listProjects() {
      yield { ok: true, value: projects };
    },
    async listComputes() {
      reads += 1;
      return { ok: true, value: { computes: [], unreadable: [] } };
    },
    permit: async () => ({ isUsed: () => false, take: () => undefined, giveBack() {} }),
    accountStatus: () => [{ account: 'a', key: 'valid' }],
  };
  const deps = {
    ...{ api, clock, telemetry, fleet, outages: createOutages(telemetry, clock), rules },
    ...{ queue: { add: async () => {} }, store: { records: async () => new Map() }, rhythm: { inventoryMs: 30_000 } },
  } as unknown as InventoryDeps;
  await takeInventory(deps, new AbortController().signal);
  return reads;
}

it('nothing is read in the background before a boundary that needs the whole limit of the minute', async () => {
  expect(await readAt(400, NOW + 60_000)).toBe(0);
  expect(await readAt(400, NOW + 3_600_000)).toBeGreaterThan(0);
  expect(await readAt(400, NOW + 120_000)).toBe(0);
  expect(await readAt(100, NOW + 60_000)).toBeGreaterThan(0);
  expect(await readAt(400, NOW + 60_000, { account: 'another' })).toBeGreaterThan(0);
});

it('boundaries at many instants are no herd, and waves of one herd are', async () => {
  const spread = (index: number) => NOW + (index % 10) * 10_000;
  expect(await readAt(400, spread)).toBeGreaterThan(0);
  const opensAtMs = NOW + 90_000;
  const waves = Array.from({ length: 9 }, (_, index) => ({
    ...{ leadMs: (9 - index) * 10_000, computes: 40, last: { priority: 0, part: index / 9 } },
  }));
  const readyWaves = [{ account: 'a', opensAtMs, setHash: 'h', waves }];
  expect(await readAt(400, spread, { readyWaves })).toBe(0);
  expect(
    await readAt(400, spread, { readyWaves: [{ ...readyWaves[0], account: 'another' } as ReadyWaves] }),
  ).toBeGreaterThan(0);
});
