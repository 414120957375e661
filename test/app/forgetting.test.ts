import { describe, expect, it } from 'vitest';
import { createFleet } from '../../src/app/fleet/fleet.ts';
import { recordAbsent } from '../../src/app/fleet/forget-project.ts';
import { type InventoryDeps, takeInventory } from '../../src/app/fleet/inventory.ts';
import { readingCollection } from '../../src/app/readings/reading.ts';
import { createOutages } from '../../src/app/telemetry/outages.ts';
import type { ComputeRecord } from '../../src/domain/records/compute-record.ts';
import type { ApiResult, ControlApi, Operation, Project } from '../../src/ports/control-api.ts';
import type { Lease } from '../../src/ports/store.ts';
import { aCompute, aRecord, currentRules } from '../support/builders.ts';
import { memoryDocumentStore } from '../support/memory-documents.ts';
import { memoryLog } from '../support/memory-log.ts';

const SHOP: Project = { account: 'a', projectId: 'p-one', name: 'shop', regionId: 'r', updatedAtMs: 1 };
const LEASE = {} as Lease;
const DAY_MS = 24 * 3_600_000;

/** A daemon that has met one project with one compute, on a store that is a map. */
function aDaemon() {
  const records = new Map<string, ComputeRecord>([['ep-one', aRecord()]]);
  const broken = new Map<string, string>();
  const platform = {
    projects: [SHOP],
    computes: [aCompute()],
    operations: { ok: true, value: [] } as ApiResult<Operation[]>,
    isLeaseFree: true,
    isReadable: true,
  };
  const api: Partial<ControlApi> = {
    async *listProjects() {
      yield { ok: true, value: platform.projects };
    },
    listComputes: async () =>
      platform.isReadable
        ? { ok: true, value: { computes: platform.computes, unreadable: [] } }
        : failed('unavailable', 503),
    async *listOperations() {
      yield platform.operations;
    },
    permit: async () => ({ isUsed: () => false, take: () => undefined, giveBack() {} }),
    accountStatus: () => [{ account: 'a', key: 'valid' }],
  };
  const time = { ms: 0 };
  const clock = { now: () => time.ms, monotonicMs: () => time.ms };
  const log = memoryLog();
  const telemetry = { log, metrics: { increment() {}, set() {}, clear() {}, observe() {} } };
  const documents = memoryDocumentStore();
  const store = {
    deleteUsage: async () => {},
    acquireLease: async () => (platform.isLeaseFree ? LEASE : undefined),
    releaseLease: async () => {},
    records: async () => new Map(records),
    brokenRecords: async () => broken,
    putRecord: async (_: string, id: string, record: ComputeRecord) => Boolean(records.set(id, record)),
    deleteRecord: async (_: string, id: string) => broken.delete(id) || records.delete(id),
    ...documents,
  };
  const fleet = createFleet({ clock } as never);
  const context = {
    ...{ api, clock, telemetry, store, fleet, holder: 'me', outages: createOutages(telemetry, clock) },
    ...{ rules: currentRules(), queue: { add: async () => {} }, rhythm: { inventoryMs: 30_000 } },
  } as unknown as InventoryDeps;
  const takeRound = () => takeInventory(context, new AbortController().signal);
  const events = () => log.lines.map(({ fields }) => (fields as { event: string }).event);
  return { platform, records, broken, documents, time, context, fleet, takeRound, events };
}

const failed = (code: 'not_found' | 'forbidden' | 'unavailable', status?: number): ApiResult<never> => ({
  ok: false,
  error: { code, route: 'GET operations', message: code, ...(status !== undefined && { status }) },
});

describe('a project that is not listed any more', () => {
  it.each<[string, ApiResult<Operation[]>]>([
    ['answers', { ok: true, value: [] }],
    ['cannot be asked', failed('unavailable', 503)],
    ['has no key', failed('not_found')],
  ])('is kept with all that is known of it while it %s', async (_, answer) => {
    const { platform, records, fleet, takeRound, events } = aDaemon();
    await takeRound();
    platform.projects = [];
    platform.operations = answer;
    for (let round = 0; round < 5; round += 1) await takeRound();
    expect([fleet.projectIds(), [...records.keys()], events()]).toEqual([['p-one'], ['ep-one'], []]);
    expect(fleet.cachedProject('p-one')?.computes).toHaveLength(1);
  });

  it('is kept while one list and one 404 say so, and when lists have it again in between', async () => {
    const { platform, records, fleet, time, takeRound, events } = aDaemon();
    await takeRound();
    platform.operations = failed('not_found', 404);
    for (const projects of [[], [SHOP], [], [SHOP]]) {
      platform.projects = projects;
      await takeRound();
      time.ms += 60_000;
    }
    platform.projects = [];
    await takeRound();
    await takeRound();
    expect([fleet.projectIds(), [...records.keys()]]).toEqual([['p-one'], ['ep-one']]);
    expect(events()).not.toContain('ebb.project_forgotten');
  });

  it('is forgotten once it answers 404 a minute later, too, which is said; with the next list if somebody is busy with it', async () => {
    const { platform, records, documents, fleet, time, takeRound, events } = aDaemon();
    const collection = readingCollection('p-one');
    await documents.putDocument(collection, 'p-one', 'a reading');
    await takeRound();
    platform.projects = [];
    platform.operations = failed('not_found', 404);
    await takeRound();
    time.ms += 60_000;
    platform.isLeaseFree = false;
    await takeRound();
    expect([fleet.projectIds(), records.size]).toEqual([['p-one'], 1]);
    platform.isLeaseFree = true;
    await takeRound();
    expect([fleet.projectIds(), records.size, events()]).toEqual([[], 0, ['ebb.project_forgotten']]);
    expect(await documents.document(collection, 'p-one')).toBeUndefined();
  });

  it('is no longer looked after when the key may not read it, and its records are kept', async () => {
    const { platform, records, fleet, takeRound } = aDaemon();
    await takeRound();
    platform.projects = [];
    platform.operations = failed('forbidden', 403);
    await takeRound();
    expect([fleet.projectIds(), records.size]).toEqual([[], 1]);
  });
});

describe('a survey of an account', () => {
  it('is noted once the listed projects are read, also without a project', async () => {
    const { platform, time, fleet, takeRound } = aDaemon();
    await takeRound();
    const shown = new Set(['p-one']);
    expect(fleet.surveys).toEqual(new Map([['a', { projectIds: shown, askedAtMonotonicMs: 0 }]]));
    time.ms = 5;
    platform.projects = [];
    await takeRound();
    expect(fleet.surveys).toEqual(new Map([['a', { projectIds: new Set(), askedAtMonotonicMs: 5 }]]));
  });

  it('is not noted while a project that has changed cannot be read', async () => {
    const { platform, time, fleet, takeRound } = aDaemon();
    await takeRound();
    time.ms = 5;
    platform.projects = [{ ...SHOP, updatedAtMs: 100_000 }];
    platform.isReadable = false;
    await takeRound();
    expect(fleet.surveys.get('a')?.askedAtMonotonicMs).toBe(0);
    platform.isReadable = true;
    await takeRound();
    expect(fleet.surveys.get('a')?.askedAtMonotonicMs).toBe(5);
  });
});

describe('a compute that is not listed any more', () => {
  const none = { project: SHOP, computes: [], unreadable: [], readAtMs: 0 };

  it('keeps its record for hours of absence, after which it is forgotten, and both are said', async () => {
    const { context, records, time, events } = aDaemon();
    const look = () => recordAbsent(context, LEASE, none, new Map(records));
    await look();
    time.ms += DAY_MS - 1;
    await look();
    expect([records.get('ep-one')?.baseline, events()]).toEqual([aRecord().baseline, ['ebb.compute_absent']]);
    time.ms += 1;
    await look();
    expect([records.size, events()]).toEqual([0, ['ebb.compute_absent', 'ebb.compute_forgotten']]);
  });

  it('keeps a record that cannot be read for as long', async () => {
    const { context, records, broken, time } = aDaemon();
    records.clear();
    broken.set('ep-one', SHOP.projectId).set('ep-other', 'p-other');
    const look = () => recordAbsent(context, LEASE, none, records);
    await look();
    time.ms += DAY_MS - 1;
    await look();
    expect(broken.size).toBe(2);
    time.ms += 1;
    await look();
    expect([...broken.keys()]).toEqual(['ep-other']);
  });

  it('is not what another daemon has seen since the reading began', async () => {
    const { context, records, time, events } = aDaemon();
    time.ms = 10;
    records.set('ep-one', aRecord({ firstSeenAtMs: 5 }));
    await recordAbsent(context, LEASE, { ...none, readAtMs: 4 }, new Map(records));
    expect([records.get('ep-one')?.absentSinceMs, events()]).toEqual([undefined, []]);
    await recordAbsent(context, LEASE, { ...none, readAtMs: 6 }, new Map(records));
    expect([records.get('ep-one')?.absentSinceMs, events()]).toEqual([10, ['ebb.compute_absent']]);
  });

  it('is not what a listed one is that is not understood', async () => {
    const { context, records } = aDaemon();
    for (const unreadable of [[{ computeId: 'ep-one', message: '?' }], [{ message: '?' }]]) {
      await recordAbsent(context, LEASE, { ...none, unreadable }, new Map(records));
    }
    expect(records.get('ep-one')).toEqual(aRecord());
  });
});
