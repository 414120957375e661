/** Two daemons of one group, which read each project once. */
import { setImmediate } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { createFleet } from '../../src/app/fleet/fleet.ts';
import { type InventoryDeps, takeInventory } from '../../src/app/fleet/inventory.ts';
import { createSharedReadings } from '../../src/app/fleet/stored-readings.ts';
import { createReadingsWriter } from '../../src/app/fleet/write-readings.ts';
import { measureImpact } from '../../src/app/rollout/disruption-impact.ts';
import { createOutages } from '../../src/app/telemetry/outages.ts';
import type { Project } from '../../src/ports/control-api.ts';
import { aCompute, currentRules } from '../support/builders.ts';
import { memoryDocumentStore } from '../support/memory-documents.ts';
import { memoryLog } from '../support/memory-log.ts';

const NOW_MS = Date.parse('2026-03-02T08:00:00Z');
const NEVER = new AbortController().signal;

function aGroup(projects: number) {
  const time = { ms: NOW_MS };
  const clock = { now: () => time.ms, monotonicMs: () => time.ms, nextTurn: async () => {} };
  const listed: Project[] = Array.from({ length: projects }, (_, index) => ({
    ...{ account: 'a', projectId: `p-${index}`, name: `p-${index}`, regionId: 'r', updatedAtMs: NOW_MS - 60_000 },
  }));
  const store = {
    ...memoryDocumentStore(),
    records: async () => new Map(),
    deleteUsage: async () => {},
    timeMs: async () => time.ms,
  };
  const seen = { reads: [] as string[], reconciles: [] as string[] };
  const overrides = { refresh: async () => {}, snapshot: () => ({ holds: [], freezes: [], revision: 0 }) };
  const telemetry = { log: memoryLog(), metrics: { increment() {}, set() {}, clear() {}, observe() {} } };
  const api = {
    async *listProjects() {
      yield { ok: true, value: listed.map((project) => ({ ...project })) };
    },
    async listComputes({ projectId }: Project) {
      seen.reads.push(projectId);
      await setImmediate();
      return {
        ok: true,
        value: { computes: [aCompute({ projectId, computeId: `ep-${projectId}`, state: 'idle' })], unreadable: [] },
      };
    },
    permit: async () => ({ isUsed: () => false, take: () => undefined, giveBack() {} }),
    accountStatus: () => [{ account: 'a', key: 'valid' }],
  };
  const settled = new Set<string>();
  function start(turn = async () => {}) {
    const fleet = createFleet({ clock } as never);
    const rhythm = { inventoryMs: 30_000, resyncMs: 30_000 };
    const rules = currentRules();
    const writer = createReadingsWriter({
      fleet,
      store,
      clock,
      storeWatch: { lostAtMs: () => undefined },
      apiUrl: 'u',
    } as never);
    const sharedReadings = createSharedReadings({ fleet, clock, store, rules, rhythm, writer });
    const deps = {
      ...{
        api: { ...api, permit: () => turn().then(api.permit) },
        clock,
        telemetry,
        fleet,
        outages: createOutages(telemetry, clock),
        rules,
        store,
        rhythm,
        sharedReadings,
        adoptsSettled: async (projectId: string) => settled.has(projectId),
      },
      queue: { add: async (_: string, { key }: { key: string }) => void seen.reconciles.push(key) },
    } as unknown as InventoryDeps;
    const takeRound = () => takeInventory(deps, NEVER);
    const measureAll = () =>
      measureImpact({ ...deps, overrides } as never, { ...rules.current, policies: rules.current.policies.set }, NEVER);
    return { fleet, sharedReadings, takeRound, measureAll };
  }
  return { time, seen, listed, settled, start };
}

it('what one daemon has read, the other takes, also while both read', async () => {
  const { seen, start, listed } = aGroup(40);
  const [one, other] = [start(), start()];
  await one.takeRound();
  expect(seen.reads).toHaveLength(40);
  await other.takeRound();
  expect(seen.reads).toHaveLength(40);
  expect(listed.every(({ projectId }) => other.fleet.cachedProject(projectId)?.isShared)).toBe(true);
  expect(other.fleet.surveys.get('a')?.projectIds.size).toBe(40);
});

it('what another daemon reads while this one waits for its turn is taken, too', async () => {
  const { seen, start } = aGroup(8);
  const one = start();
  let meanwhile: Promise<void> | undefined;
  const other = start(async () => {
    meanwhile ??= one.takeRound();
    await meanwhile;
  });
  await other.takeRound();
  expect(seen.reads).toHaveLength(8);
});

it('what another daemon has read since the list is taken, however long the turn of a project takes to come', async () => {
  const { seen, start, time } = aGroup(3);
  const one = start();
  let meanwhile: Promise<void> | undefined;
  const other = start(async () => {
    meanwhile ??= one.takeRound();
    await meanwhile;
    time.ms += 60_000;
  });
  await other.takeRound();
  expect(seen.reads).toHaveLength(3);
});

it('what another daemon has read and reconciled is not reconciled again, unless something is to be done', async () => {
  const { seen, start, settled } = aGroup(3);
  const [one, other] = [start(), start()];
  settled.add('p-0').add('p-2');
  await one.takeRound();
  // What a daemon has read itself is always reconciled.
  expect(seen.reconciles).toEqual(['p-0', 'p-1', 'p-2']);
  await other.takeRound();
  expect(seen.reconciles).toEqual(['p-0', 'p-1', 'p-2', 'p-1']);
});

it('what has changed since is read again, once', async () => {
  const { seen, start, listed, time } = aGroup(3);
  const [one, other] = [start(), start()];
  await one.takeRound();
  await other.takeRound();
  time.ms += 10_000;
  (listed[1] as Project).updatedAtMs = time.ms - 5_000;
  await other.takeRound();
  await one.takeRound();
  expect(seen.reads).toEqual(['p-0', 'p-1', 'p-2', 'p-1']);
  expect(one.fleet.cachedProject('p-1')?.isShared).toBe(true);
});

it('a project that was read just before is not read in the background of the same round, nor of a round right after', async () => {
  const { seen, start, time } = aGroup(3);
  const { takeRound } = start();
  await takeRound();
  time.ms += 14_999;
  await takeRound();
  expect(seen.reads).toHaveLength(3);
  time.ms += 15_000;
  await takeRound();
  expect(seen.reads).toHaveLength(6);
});

it('while the impact of rules is measured, neither reads what the other has read', async () => {
  const { seen, start } = aGroup(100);
  const { takeRound, measureAll } = start();
  const [impact] = await Promise.all([measureAll(), takeRound()]);
  expect(impact?.computes).toBe(100);
  // Those that both are reading when they meet are read twice.
  expect(seen.reads.length).toBeLessThanOrEqual(100 + 8);
});

it.each([
  [30, 16, 30],
  [350, 16, 0],
  [350, 149, 0],
  [350, 151, 35],
])('of %i projects that were read %i s ago, the background reads %i again', async (projects, seconds, again) => {
  const { time, seen, start } = aGroup(projects);
  const { takeRound } = start();
  await takeRound();
  time.ms += seconds * 1000;
  await takeRound();
  expect(seen.reads).toHaveLength(projects + again);
});
