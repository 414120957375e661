import { describe, expect, it } from 'vitest';
import { isBranchAsDecided, needsReading } from '../../src/app/apply/rechecks.ts';
import { type CachedProject, CONFIRMED_MS, createFleet } from '../../src/app/fleet/fleet.ts';
import { compareList } from '../../src/app/fleet/project-list.ts';
import { createSharedReadings, loadReadings, takeLoaded } from '../../src/app/fleet/stored-readings.ts';
import { createReadingsWriter } from '../../src/app/fleet/write-readings.ts';
import { LISTS_COLLECTION, listText, readingCollection, SURVEYS_COLLECTION } from '../../src/app/readings/reading.ts';
import { usableCachedProject } from '../../src/app/reconcile/missing.ts';
import type { Compute } from '../../src/domain/compute/compute.ts';
import type { ComputeRecord } from '../../src/domain/records/compute-record.ts';
import type { Project } from '../../src/ports/control-api.ts';
import { aCompute, aRecord, aSchedule, currentRules } from '../support/builders.ts';
import { memoryDocumentStore } from '../support/memory-documents.ts';
import { memoryLog } from '../support/memory-log.ts';
import { aSelector } from '../support/selectors.ts';

const NOW_MS = Date.parse('2026-03-02T08:00:00Z');
const API_URL = 'https://api.example/v2';
const RESYNC_MS = 30_000;
/** When ebb changed the compute last, and when its project was read since. */
const SENT_MS = NOW_MS - 600_000;
const READ_MS = NOW_MS - 10_000;

const PROJECT: Project = {
  ...{ account: 'a', projectId: 'p', name: 'shop', regionId: 'r' },
  updatedAtMs: NOW_MS - 590_000,
  computeLastActiveAtMs: NOW_MS - 500_000,
};
const COMPUTE = aCompute({ account: 'a', projectId: 'p', projectName: 'shop', regionId: 'r', state: 'idle' });
const { computeId } = COMPUTE;

/** A store, its clock, and the records of one project. */
function aStore() {
  const documents = memoryDocumentStore();
  const time = { ms: NOW_MS };
  const loss: { atMs?: number } = {};
  const records = new Map<string, ComputeRecord>([[computeId, aRecord({ lastSentAtMs: SENT_MS })]]);
  const store = {
    ...documents,
    deleteUsage: async () => {},
    timeMs: async () => time.ms,
    records: async () => records,
  };
  return { documents, time, loss, records, store };
}

type AStore = ReturnType<typeof aStore>;

/** A daemon on this store, whose own clocks begin now. */
function aDaemon({ store, time, loss }: AStore, { showsChanges = true, rules = currentRules() } = {}) {
  const startedMs = time.ms;
  const clock = { now: () => time.ms, monotonicMs: () => 1_000 + time.ms - startedMs };
  const fleet = createFleet({ clock } as never);
  if (showsChanges) fleet.listShowsChanges.set('a', true);
  const deps = { fleet, clock, store, rules, rhythm: { resyncMs: RESYNC_MS } };
  const writer = createReadingsWriter({
    fleet,
    store,
    storeWatch: { lostAtMs: () => loss.atMs },
    apiUrl: API_URL,
    clock: clock as never,
  } as never);
  const compare = (project: Project, askedAtMonotonicMs = clock.monotonicMs()) =>
    compareList({ fleet, store, telemetry: { log: memoryLog() } } as never, {
      ...{ projects: [project], failures: new Map(), askedAtMs: clock.now(), askedAtMonotonicMs },
    });
  return {
    ...{ fleet, clock, deps, writer, compare },
    shared: createSharedReadings({ ...deps, writer }),
    /** What a start does: the readings, then a list that shows this, which is compared. */
    async start(listed: Project = PROJECT) {
      const loaded = await loadReadings(deps);
      const taken = await takeLoaded(deps, loaded, { projects: [listed], apiUrl: API_URL });
      await compare(listed);
      return { taken, isFresh: fleet.isFresh('p') };
    },
    usable: (records: ReadonlyMap<string, ComputeRecord>) => usableCachedProject(deps, { records }, 'p', undefined),
  };
}

interface Seen {
  computes?: readonly Compute[];
  includedWrites?: ReadonlyMap<string, number>;
  /** Since when the project was read. */
  agoMs?: number;
  project?: Project;
  /** How long ago a list confirmed it; no list did where it is absent. */
  listedAgoMs?: number;
}

/** Stores what another daemon has read, as that daemon does. */
async function stored(at: AStore, seen: Seen = {}): Promise<void> {
  const { computes = [COMPUTE], includedWrites = new Map([[computeId, SENT_MS]]), listedAgoMs } = seen;
  const { agoMs = NOW_MS - READ_MS, project = PROJECT } = seen;
  const { fleet, writer, clock } = aDaemon(at);
  const readAtMonotonicMs = clock.monotonicMs() - agoMs;
  fleet.list(project);
  fleet.cache({ project, computes, unreadable: [], includedWrites, readAtMs: at.time.ms - agoMs, readAtMonotonicMs });
  if (listedAgoMs !== undefined) {
    const askedAtMonotonicMs = clock.monotonicMs() - listedAgoMs;
    fleet.surveys.set('a', { projectIds: new Set(['p']), askedAtMonotonicMs });
  }
  await writer.round();
}

describe('a daemon that starts', () => {
  it('takes a stored reading that its own list confirms, and may write from it as long as from one of its own', async () => {
    const at = aStore();
    await stored(at);
    const { start, usable, fleet } = aDaemon(at);
    expect(await start()).toEqual({ taken: 1, isFresh: true });
    expect(usable(at.records)).toBe(fleet.cachedProject('p'));
    at.time.ms += CONFIRMED_MS + 1;
    expect(usable(at.records)).toBeUndefined();
  });

  it('takes an old reading that a survey has confirmed since, with its true age', async () => {
    const at = aStore();
    await stored(at, { agoMs: 400_000, listedAgoMs: 20_000 });
    const { start, fleet } = aDaemon(at);
    expect(await start()).toEqual({ taken: 1, isFresh: true });
    expect(fleet.ageMs('p')).toBe(400_000);
  });

  it.each<[string, Seen & { records?: Partial<ComputeRecord>; listed?: Partial<Project> }]>([
    ['ebb has written to the compute since', { includedWrites: new Map([[computeId, SENT_MS - 1]]) }],
    ['nobody knows whether it includes the last write', { includedWrites: new Map() }],
    ['it includes a write that the records do not have', { records: { lastSentAtMs: undefined as never } }],
    ['a write is pending', { records: { lastSentAtMs: SENT_MS, intent: { restart: true, atMs: SENT_MS } as never } }],
    ['a compute with a record is not in it', { computes: [{ ...COMPUTE, computeId: 'ep-other' }] }],
    [
      'a compute that ebb has never changed is not in it',
      { computes: [{ ...COMPUTE, computeId: 'ep-other' }], records: { lastSentAtMs: undefined as never } },
    ],
    ['it has a compute that was missing since', { records: { lastSentAtMs: SENT_MS, absentSinceMs: NOW_MS } }],
    ['it is older than two resync intervals', { agoMs: 2 * RESYNC_MS + 1 }],
    ['the list that confirmed it is older than that', { agoMs: 400_000, listedAgoMs: 2 * RESYNC_MS + 1 }],
    ['the list shows a later change', { listed: { updatedAtMs: NOW_MS - 3_000 } }],
    ['the list shows a change that it may include', { listed: { updatedAtMs: NOW_MS - 60_000 } }],
    ['the list shows a later use', { listed: { computeLastActiveAtMs: NOW_MS - 3_000 } }],
    ['the project has another name', { listed: { name: 'ops' } }],
    ['the project is of another account', { listed: { account: 'b' } }],
    ['it began within the second of the change', { project: { ...PROJECT, updatedAtMs: READ_MS - 1_999 } }],
  ])('does not take one if %s', async (_, { records, listed, ...seen }) => {
    const at = aStore();
    if (records) at.records.set(computeId, aRecord(records));
    await stored(at, seen);
    const { start, fleet, usable } = aDaemon(at);
    const result = await start({ ...PROJECT, ...(seen.project ?? {}), ...listed });
    expect(result).toEqual({ taken: 0, isFresh: false });
    expect([fleet.cachedProject('p'), usable(at.records)]).toEqual([undefined, undefined]);
  });

  it.each([readingCollection('p'), LISTS_COLLECTION, SURVEYS_COLLECTION])(
    'takes none where documents of %s are of another version',
    async (collection) => {
      const at = aStore();
      await stored(at, { agoMs: 400_000, listedAgoMs: 20_000 });
      for (const [name, text] of await at.documents.documents(collection))
        await at.documents.putDocument(collection, name, text.replace('"v":1', '"v":2'));
      expect(await aDaemon(at).start()).toEqual({ taken: 0, isFresh: false });
    },
  );

  it('is not misled by a list that was stored without its survey', async () => {
    const at = aStore();
    await stored(at, { agoMs: 400_000, listedAgoMs: 20_000 });
    await at.documents.putDocument(LISTS_COLLECTION, 'a', listText(['p', 'p-new']));
    expect(await aDaemon(at).start()).toEqual({ taken: 0, isFresh: false });
  });

  it('takes none of another control API, nor one from the future of a store whose clock was set back', async () => {
    const at = aStore();
    await stored(at, { listedAgoMs: 5_000 });
    const { deps } = aDaemon(at);
    const loaded = await loadReadings(deps);
    expect(await takeLoaded(deps, loaded, { projects: [PROJECT], apiUrl: 'https://other.example' })).toBe(0);
    at.time.ms -= 60_000;
    expect(await aDaemon(at).start()).toEqual({ taken: 0, isFresh: false });
  });

  it('knows the fleet also where the list is not known to show changes, but reads before it writes', async () => {
    const at = aStore();
    await stored(at, { agoMs: 1_000 });
    const { start, usable } = aDaemon(at, { showsChanges: false });
    expect(await start()).toEqual({ taken: 1, isFresh: false });
    expect(usable(at.records)?.isShared).toBe(true);
    at.time.ms += 10_000;
    expect(usable(at.records)).toBeUndefined();
  });
});

describe('a shared reading', () => {
  it('is not written from if a person has changed or used the project before the list was requested', async () => {
    for (const change of [{ updatedAtMs: NOW_MS + 20_000 }, { computeLastActiveAtMs: NOW_MS + 20_000 }]) {
      const at = aStore();
      await stored(at);
      const { start, compare, fleet, usable } = aDaemon(at);
      await start();
      at.time.ms += 24_000;
      await compare({ ...PROJECT, ...change });
      expect(fleet.isFresh('p')).toBe(false);
      expect(usable(at.records)).toBeUndefined();
    }
  });

  it('is not confirmed by a list that was requested before it', async () => {
    const at = aStore();
    await stored(at, { agoMs: 1_000 });
    const { shared, compare, fleet, clock } = aDaemon(at);
    expect(await shared.take(PROJECT, RESYNC_MS)).toBe(true);
    await compare(PROJECT, clock.monotonicMs() - 1_001);
    expect(fleet.isFresh('p')).toBe(false);
    await compare(PROJECT, clock.monotonicMs() - 1_000);
    expect(fleet.isFresh('p')).toBe(true);
  });

  it('is not written from after a later write of any daemon, nor while one is pending', async () => {
    const at = aStore();
    await stored(at);
    const { start, usable } = aDaemon(at);
    await start();
    expect(usable(at.records)).toBeDefined();
    expect(usable(new Map([[computeId, aRecord({ lastSentAtMs: SENT_MS + 1 })]]))).toBeUndefined();
    const intent = { restart: true as const, atMs: SENT_MS, policy: 'x' };
    const pending = aRecord({ lastSentAtMs: SENT_MS, intent: intent as never });
    expect(usable(new Map([[computeId, pending]]))).toBeUndefined();
  });

  it('is not written from where the store has lost a write that this daemon remembers', async () => {
    const at = aStore();
    await stored(at);
    const { start, usable, fleet } = aDaemon(at);
    await start();
    fleet.putEvaluated({ compute: COMPUTE, record: aRecord({ lastSentAtMs: NOW_MS + 1 }) } as never);
    expect(usable(at.records)).toBeUndefined();
  });

  it('proves no sleep but in a crowd, however new it is', async () => {
    const at = aStore();
    await stored(at, { agoMs: 500 });
    const schedule = currentRules();
    const { deps, shared, fleet } = aDaemon(at, { rules: schedule });
    await shared.take(PROJECT, RESYNC_MS);
    const own = { ...(fleet.cachedProject('p') as CachedProject) };
    const plan = { verdict: 'act', actions: [{ fields: { minCu: 1, maxCu: 1 } }], why: [], waiting: [] };
    const evaluated = { compute: COMPUTE, record: aRecord(), plan } as never;
    const recheck = {
      ...{ ...deps, mode: 'enforce', overrides: { holds: [], freezes: [] } },
      ...{
        samples: { historyOf: () => new Map() },
        slots: { isAtOnceReached: () => false, isAtMostReached: () => false },
      },
    } as never;
    expect(needsReading(recheck, evaluated, false)).toBe(true);
    fleet.confirm('p', deps.clock.monotonicMs());
    expect([needsReading(recheck, evaluated, false), needsReading(recheck, evaluated, true)]).toEqual([true, false]);
    delete own.isShared;
    fleet.cache(own);
    expect(needsReading(recheck, evaluated, false)).toBe(false);
  });

  it('of another daemon is taken while it is new, and only in place of an older one', async () => {
    const at = aStore();
    await stored(at, { agoMs: 9_000 });
    const { shared, fleet, clock } = aDaemon(at);
    expect(await shared.take(PROJECT, 8_999)).toBe(false);
    expect(await shared.take(PROJECT, 9_000)).toBe(true);
    const taken = fleet.cachedProject('p') as CachedProject;
    fleet.cache({ ...taken, readAtMonotonicMs: clock.monotonicMs() - 8_000 });
    expect(await shared.take(PROJECT, 10_000)).toBe(false);
  });

  it.each<[string, Seen & { records?: Partial<ComputeRecord>; listed?: Partial<Project> }]>([
    ['a later write', { includedWrites: new Map([[computeId, SENT_MS - 1]]) }],
    ['a pending write', { records: { lastSentAtMs: SENT_MS, intent: { restart: true, atMs: SENT_MS } as never } }],
    ['a later change in the list', { listed: { updatedAtMs: NOW_MS - 3_000 } }],
    ['a later use in the list', { listed: { computeLastActiveAtMs: NOW_MS - 3_000 } }],
    ['another name', { listed: { name: 'ops' } }],
    ['a change that it may include by the clocks alone', { listed: { updatedAtMs: NOW_MS - 60_000 } }],
  ])('of another daemon is not taken after %s', async (_, { records, listed, ...seen }) => {
    const at = aStore();
    if (records) at.records.set(computeId, aRecord(records));
    await stored(at, { ...seen, agoMs: 3_000 });
    expect(await aDaemon(at).shared.take({ ...PROJECT, ...listed }, RESYNC_MS)).toBe(false);
  });

  it('is not confirmed by a list with another updated_at, though it began later by the clocks', async () => {
    const at = aStore();
    await stored(at, { agoMs: 3_000 });
    const { shared, compare, fleet } = aDaemon(at);
    expect(await shared.take(PROJECT, RESYNC_MS)).toBe(true);
    expect(await compare({ ...PROJECT, updatedAtMs: NOW_MS - 60_000 })).toHaveLength(1);
    expect(fleet.isFresh('p')).toBe(false);
  });

  it('has names of branches of an unknown age, which are read again before a change that depends on them', async () => {
    const at = aStore();
    const rules = currentRules(aSchedule({ select: aSelector({ branches: ['main'] }) }));
    await stored(at, { computes: [{ ...COMPUTE, branchName: 'main', branchRoles: ['default'] }], agoMs: 1_000 });
    const { deps, shared, fleet } = aDaemon(at, { rules });
    expect(await shared.take(PROJECT, RESYNC_MS)).toBe(true);
    const cached = fleet.cachedProject('p') as CachedProject;
    let asked = 0;
    const api = {
      async *listBranches() {
        asked += 1;
        const branch = { branchId: COMPUTE.branchId, name: 'main', isDefault: true, isProtected: true };
        yield { ok: true, value: [branch] };
      },
    };
    const recheck = {
      ...deps,
      api,
      telemetry: { log: memoryLog() },
      outages: { projectAnswers() {} },
      queue: { addAll: async () => {}, add: async () => {} },
    };
    const evaluated = { compute: cached.computes[0], plan: { actions: [{ disconnects: true }] } };
    const { signal } = new AbortController();
    expect(await isBranchAsDecided(recheck as never, cached, evaluated as never, signal)).toBe(false);
    expect(asked).toBe(1);
  });

  it('is stored at once where another daemon may need it, and by the one that took it only after a loss of the store’s data', async () => {
    const at = aStore();
    const reader = aDaemon(at);
    reader.fleet.list(PROJECT);
    const now = { readAtMs: at.time.ms, readAtMonotonicMs: reader.clock.monotonicMs() };
    const includedWrites = new Map([[computeId, SENT_MS]]);
    reader.fleet.cache({ project: PROJECT, computes: [COMPUTE], unreadable: [], includedWrites, ...now });
    await reader.shared.share('p');
    const text = await at.documents.document(readingCollection('p'), 'p');
    expect(text).toBeDefined();
    const other = aDaemon(at);
    expect(await other.shared.take(PROJECT, RESYNC_MS)).toBe(true);
    await at.documents.deleteDocuments(readingCollection('p'), ['p']);
    await other.writer.round();
    expect(await at.documents.document(readingCollection('p'), 'p')).toBeUndefined();
    at.loss.atMs = at.time.ms;
    await other.writer.round();
    expect(await at.documents.document(readingCollection('p'), 'p')).toBe(text);
  });

  it('has the change of ebb that a list has shown since, so that it may be taken', async () => {
    const at = aStore();
    const reader = aDaemon(at);
    reader.fleet.list(PROJECT);
    const now = { readAtMs: at.time.ms, readAtMonotonicMs: reader.clock.monotonicMs() };
    const includedWrites = new Map([[computeId, SENT_MS]]);
    reader.fleet.cache({ project: PROJECT, computes: [COMPUTE], unreadable: [], includedWrites, ...now });
    await reader.writer.round();
    const listed = { ...PROJECT, updatedAtMs: NOW_MS - 5_000 };
    at.time.ms += 5_000;
    await reader.compare(listed);
    await reader.writer.round();
    expect(await aDaemon(at).start(listed)).toEqual({ taken: 1, isFresh: true });
  });
});
