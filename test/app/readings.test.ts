import { describe, expect, it } from 'vitest';
import { createReadingsApi } from '../../src/adapters/control-api/readings-api.ts';
import { beginAtBoundary, endAtBoundary } from '../../src/app/fleet/at-boundary.ts';
import { type CachedProject, createFleet } from '../../src/app/fleet/fleet.ts';
import { readFleet } from '../../src/app/fleet/read-fleet.ts';
import { createReadingsWriter } from '../../src/app/fleet/write-readings.ts';
import {
  COLLECTIONS_IN_ORDER,
  readReadings,
  recentFleet,
  withAppliedSince,
} from '../../src/app/readings/read-readings.ts';
import {
  digestOf,
  listText,
  parseList,
  parseReading,
  parseSurvey,
  readingCollection,
  readingText,
  type SharedReading,
  surveyText,
} from '../../src/app/readings/reading.ts';
import type { Compute } from '../../src/domain/compute/compute.ts';
import type { ComputeRecord, Intent } from '../../src/domain/records/compute-record.ts';
import type { ApiResult, ComputeList, ControlApi, Project } from '../../src/ports/control-api.ts';
import type { DocumentStore } from '../../src/ports/store.ts';
import { aCompute, aRecord } from '../support/builders.ts';
import { memoryDocumentStore } from '../support/memory-documents.ts';

const NOW_MS = Date.parse('2026-03-02T08:00:00Z');
/** The store's clock, when the daemon's monotonic clock is 0. */
const STORE_MS = NOW_MS + 1_500;
const API_URL = 'https://api.example/v2';

const PROJECT: Project = {
  account: 'default',
  projectId: 'autumn-waterfall-83920157',
  name: 'orders-production-eu',
  regionId: 'aws-eu-central-1',
  updatedAtMs: NOW_MS - 5_000,
  computeLastActiveAtMs: NOW_MS - 1_000,
  pgVersion: 17,
  organizationId: 'org-little-paper-51208773',
};

/** A compute of a usual kind, with ids as long as Neon makes them. */
const COMPUTE = aCompute({
  ...{ account: 'default', projectId: PROJECT.projectId, projectName: PROJECT.name, regionId: PROJECT.regionId },
  computeId: 'ep-shiny-mountain-a2kq8xw1',
  branchId: 'br-spring-paper-a2tm9kpd',
  branchName: 'preview/checkout-redesign',
  branchRoles: ['child'],
  updatedAtMs: NOW_MS - 60_000,
  startedAtMs: NOW_MS - 70_000,
  lastActiveAtMs: NOW_MS - 1_000,
  host: 'ep-shiny-mountain-a2kq8xw1.c-2.eu-central-1.aws.neon.tech',
});

const { account, projectId, name: projectName, regionId } = PROJECT;
const LITTLE = aCompute({ account, projectId, projectName, regionId });

function aReading(fields: Partial<SharedReading> = {}): SharedReading {
  return {
    ...{ project: PROJECT, computes: [COMPUTE], unreadable: [], branchesRefused: false },
    ...{ includedWrites: new Map(), readAtMs: NOW_MS },
    ...fields,
  };
}

describe('the document of a reading', () => {
  const unnamed: Project = {
    account: 'b',
    projectId: 'p',
    name: 'p',
    nameUnknown: true,
    regionId: 'r',
    updatedAtMs: 1,
  };
  const ofUnnamed = {
    account: 'b',
    projectId: 'p',
    projectName: 'p',
    projectNameUnknown: true,
    regionId: 'r',
  } as const;

  it.each([
    ['of a usual compute', aReading()],
    ['with an included write', aReading({ includedWrites: new Map([[COMPUTE.computeId, NOW_MS - 3]]) })],
    ['of a compute of which little is known', aReading({ computes: [LITTLE] })],
    ['of a project without computes', aReading({ computes: [] })],
    [
      'of a project whose name and branches are refused',
      aReading({ project: unnamed, computes: [aCompute(ofUnnamed)], branchesRefused: true }),
    ],
    [
      'of computes that are not understood',
      aReading({ unreadable: [{ computeId: 'ep', message: 'odd' }, { message: 'x' }] }),
    ],
    [
      'of a disabled replica that is starting',
      aReading({
        computes: [{ ...COMPUTE, type: 'read_only', disabled: true, state: 'idle', pendingState: 'active' }],
      }),
    ],
  ])('is read back as it was written, %s', (_, reading) => {
    expect(parseReading(readingText(reading))).toEqual(reading);
  });

  it('has room for a compute in 400 bytes', () => {
    const includedWrites = new Map([[COMPUTE.computeId, NOW_MS]]);
    const one = readingText(aReading({ includedWrites })).length;
    const two = readingText(aReading({ includedWrites, computes: [COMPUTE, COMPUTE] })).length;
    expect(two - one).toBeLessThanOrEqual(400);
    expect(one).toBeLessThanOrEqual(700);
  });

  it.each([
    '',
    'cut o',
    '{}',
    'null',
    readingText(aReading()).replace('"v":1', '"v":2'),
    readingText(aReading()).replace('"e":"active"', '"e":"odd"'),
  ])('counts as absent where it is damaged or of another version: %s', (text) =>
    expect(parseReading(text)).toBeUndefined(),
  );

  it('of an account is read back as it was written', () => {
    const seen = { apiUrl: API_URL, listedAtMs: NOW_MS, projects: digestOf(['b', 'a']), oldestReadAtMs: NOW_MS - 1 };
    expect(parseSurvey(surveyText(seen))).toEqual(seen);
    const { oldestReadAtMs: _none, ...empty } = seen;
    expect(parseSurvey(surveyText(empty))).toEqual(empty);
    expect(parseSurvey('cut o')).toBeUndefined();
    expect(parseList(listText(['b', 'a']))).toEqual(['b', 'a']);
    expect([parseList('cut o'), parseList('{"v":2,"p":[]}')]).toEqual([undefined, undefined]);
  });
});

/** A daemon with a fleet of its own on a shared store. */
function aDaemon(documents: DocumentStore) {
  const time: { ms: number; lostAtMs?: number } = { ms: 10_000 };
  const writes: string[] = [];
  const clock = { now: () => NOW_MS + time.ms, monotonicMs: () => time.ms };
  const fleet = createFleet({ clock } as never);
  const store = {
    ...documents,
    deleteUsage: async () => {},
    timeMs: async () => STORE_MS + time.ms,
    async replaceDocument(...args: Parameters<DocumentStore['replaceDocument']>) {
      writes.push(args[1]);
      return documents.replaceDocument(...args);
    },
  };
  const writer = createReadingsWriter({
    ...{ fleet, store, apiUrl: API_URL, clock: clock as never },
    storeWatch: { lostAtMs: () => time.lostAtMs },
  });
  /** Reads a project now, or at an instant of the monotonic clock. */
  function see(project: Project, computes: Compute[], readAtMonotonicMs = time.ms): CachedProject {
    fleet.list(project);
    return fleet.cache({ project, computes, unreadable: [], readAtMs: NOW_MS + readAtMonotonicMs, readAtMonotonicMs });
  }
  function survey(...projects: Project[]): void {
    fleet.surveys.set('default', {
      projectIds: new Set(projects.map(({ projectId }) => projectId)),
      askedAtMonotonicMs: time.ms,
    });
  }
  return { time, fleet, writes, see, survey, round: () => writer.round() };
}

async function stored(documents: DocumentStore): Promise<Map<string, SharedReading>> {
  const { readings } = await readReadings({ ...documents, timeMs: async () => 0 });
  return new Map(readings);
}

const OTHER: Project = { ...PROJECT, projectId: 'p-other', name: 'other' };

describe('a daemon', () => {
  it('stores what it has read, by the store’s clock, and which projects were listed', async () => {
    const documents = memoryDocumentStore();
    const { time, see, survey, round } = aDaemon(documents);
    see(PROJECT, [COMPUTE], 4_000);
    survey(PROJECT);
    time.ms = 12_000;
    await round();
    expect(await stored(documents)).toEqual(new Map([[PROJECT.projectId, aReading({ readAtMs: STORE_MS + 4_000 })]]));
    const fleet = await readReadings({ ...documents, timeMs: async () => STORE_MS + 60_000 });
    const oldestReadAtMs = STORE_MS + 4_000;
    const seen = { listedAtMs: STORE_MS + 10_000, projects: digestOf([PROJECT.projectId]), oldestReadAtMs };
    expect(fleet.accounts).toEqual(new Map([['default', { apiUrl: API_URL, ...seen }]]));
    const age = { listedMs: 50_000, oldestMs: 56_000 };
    expect(recentFleet(fleet, { accounts: ['default'], apiUrl: API_URL })).toEqual({
      readings: [aReading({ readAtMs: oldestReadAtMs })],
      unread: [],
      ...age,
    });
  });

  it('writes a project again only if something has changed; what a list confirms is one document', async () => {
    const { time, writes, see, survey, round } = aDaemon(memoryDocumentStore());
    see(PROJECT, [COMPUTE]);
    see(OTHER, []);
    survey(PROJECT, OTHER);
    await round();
    expect(writes).toEqual([PROJECT.projectId, OTHER.projectId, 'default']);
    await round();
    expect(writes).toHaveLength(3);
    time.ms += 30_000;
    see(PROJECT, [{ ...COMPUTE }]);
    survey(PROJECT, OTHER);
    await round();
    expect(writes.slice(3)).toEqual(['default']);
    see(PROJECT, [{ ...COMPUTE, state: 'idle' }], time.ms + 1);
    await round();
    expect(writes.slice(4)).toEqual([PROJECT.projectId]);
  });

  it('never replaces a newer reading of another daemon by an older one', async () => {
    const documents = memoryDocumentStore();
    const [early, late] = [aDaemon(documents), aDaemon(documents)];
    early.see(PROJECT, [COMPUTE], 1_000);
    late.see(PROJECT, [{ ...COMPUTE, maxCu: 4 }], 2_000);
    await late.round();
    await early.round();
    expect((await stored(documents)).get(PROJECT.projectId)?.computes[0]?.maxCu).toBe(4);
    early.see(PROJECT, [COMPUTE], 3_000);
    await early.round();
    expect((await stored(documents)).get(PROJECT.projectId)?.computes[0]?.maxCu).toBe(2);
  });

  it('does not store a reading that is not believed any more', async () => {
    const documents = memoryDocumentStore();
    const { fleet, see, round } = aDaemon(documents);
    fleet.cache({ ...see(PROJECT, [COMPUTE]), readAtMs: 0 });
    await round();
    expect(await stored(documents)).toEqual(new Map());
  });

  it('replaces what is damaged', async () => {
    const documents = memoryDocumentStore();
    await documents.putDocument(readingCollection(PROJECT.projectId), PROJECT.projectId, 'cut o');
    const { see, round } = aDaemon(documents);
    see(PROJECT, [COMPUTE]);
    await round();
    expect((await stored(documents)).size).toBe(1);
  });

  it('deletes the readings of projects that are not listed any more, also those from before its start', async () => {
    const documents = memoryDocumentStore();
    const before = aDaemon(documents);
    before.see(OTHER, []);
    before.see(PROJECT, []);
    await before.round();
    const { time, see, survey, round } = aDaemon(documents);
    const third = { ...OTHER, projectId: 'p-third' };
    for (const project of [PROJECT, third]) see(project, []);
    survey(PROJECT, third);
    await round();
    expect([...(await stored(documents)).keys()].sort()).toEqual([PROJECT.projectId, 'p-third']);
    time.ms += 30_000;
    survey(PROJECT);
    await round();
    expect([...(await stored(documents)).keys()]).toEqual([PROJECT.projectId]);
  });

  it('stores again what the store has lost, within minutes', async () => {
    const documents = memoryDocumentStore();
    const { time, see, survey, round } = aDaemon(documents);
    see(PROJECT, [COMPUTE]);
    survey(PROJECT);
    await round();
    await documents.deleteDocuments(readingCollection(PROJECT.projectId), [PROJECT.projectId]);
    time.ms += 600_000;
    survey(PROJECT);
    await round();
    expect((await stored(documents)).size).toBe(1);
  });

  it('stores everything again in the next round once the store has lost its data', async () => {
    const documents = memoryDocumentStore();
    const { time, see, survey, round } = aDaemon(documents);
    for (const project of [PROJECT, OTHER]) see(project, []);
    survey(PROJECT, OTHER);
    await round();
    const all = await readReadings({ ...documents, timeMs: async () => 0 });
    for (const collection of COLLECTIONS_IN_ORDER)
      await documents.deleteDocuments(collection, [...(await documents.documents(collection)).keys()]);
    time.lostAtMs = NOW_MS;
    await round();
    expect(await readReadings({ ...documents, timeMs: async () => 0 })).toEqual(all);
    expect(recentFleet({ ...all, atMs: STORE_MS }, { accounts: ['default'], apiUrl: API_URL })?.unread).toEqual([]);
  });

  it('leaves the store to a boundary, for a minute at most', async () => {
    const documents = memoryDocumentStore();
    const { time, fleet, see, round } = aDaemon(documents);
    await round();
    see(PROJECT, [COMPUTE]);
    beginAtBoundary(fleet, NOW_MS + time.ms, 'default');
    await round();
    expect((await stored(documents)).size).toBe(0);
    time.ms += 60_000;
    await round();
    expect((await stored(documents)).size).toBe(1);
    see(OTHER, []);
    endAtBoundary(fleet, NOW_MS + 10_000, 'default');
    await round();
    expect((await stored(documents)).size).toBe(2);
  });
});

describe('the readings of a fleet', () => {
  const readings = new Map([aReading({ project: OTHER }), aReading()].map((one) => [one.project.projectId, one]));
  const ids = [PROJECT.projectId, OTHER.projectId];
  const seen = { apiUrl: API_URL, listedAtMs: NOW_MS, projects: digestOf(ids), oldestReadAtMs: NOW_MS - 5 };
  const accounts = new Map([['default', seen]]);
  const fleet = { readings, accounts, lists: new Map([['default', ids]]), atMs: NOW_MS + 600_000 };
  const expected = { accounts: ['default'], apiUrl: API_URL };
  const empty = { apiUrl: API_URL, listedAtMs: NOW_MS, projects: digestOf([]) };

  it('serve commands in the order of the list, while one confirms them that is at most ten minutes old', () => {
    const inOrder = [aReading(), aReading({ project: OTHER })];
    expect(recentFleet(fleet, expected)).toEqual({
      readings: inOrder,
      unread: [],
      listedMs: 600_000,
      oldestMs: 600_005,
    });
    expect(recentFleet({ ...fleet, atMs: fleet.atMs + 1 }, expected)).toBeUndefined();
  });

  it('serve accounts without projects, and leave out a project that is not listed', () => {
    const withEmpty = { ...fleet, accounts: new Map([...accounts, ['empty', empty]]) };
    expect(recentFleet(withEmpty, { ...expected, accounts: ['default', 'empty'] })).toBeDefined();
    const one = [OTHER.projectId];
    const listed = {
      accounts: new Map([['default', { ...seen, projects: digestOf(one) }]]),
      lists: new Map([['default', one]]),
    };
    expect(recentFleet({ ...fleet, ...listed }, expected)?.readings).toEqual([aReading({ project: OTHER })]);
  });

  it.each([
    ['there is none of it', new Map([...readings].slice(1))],
    [
      'it is of another account',
      new Map([...readings, [OTHER.projectId, aReading({ project: { ...OTHER, account: 'b' } })]]),
    ],
  ])('serve without a listed project, which is said, if %s', (_, those) => {
    const { readings: served, unread } = recentFleet({ ...fleet, readings: those }, expected) ?? {};
    expect([served, unread]).toEqual([[aReading()], [OTHER.projectId]]);
  });

  it('serve without an account that daemons have not listed for long', () => {
    const old = { ...empty, listedAtMs: NOW_MS - 1 };
    expect(recentFleet({ ...fleet, accounts: new Map([...accounts, ['old', old]]) }, expected)).toBeDefined();
  });

  it.each([
    ['no listed project has one', { ...fleet, readings: new Map() }, expected],
    [
      'the list is another one than was confirmed',
      { ...fleet, lists: new Map([['default', [...ids, 'new']]]) },
      expected,
    ],
    ['an account was never listed', fleet, { ...expected, accounts: ['default', 'other'] }],
    [
      'daemons know an account that the settings do not have',
      { ...fleet, accounts: new Map([...accounts, ['b', empty]]) },
      expected,
    ],
    ['they are of another control API', fleet, { ...expected, apiUrl: 'https://other.example' }],
    ['nothing was ever listed', { ...fleet, accounts: new Map() }, expected],
  ])('do not serve commands if %s', (_, those, accountsAndUrl) => {
    expect(recentFleet(those, accountsAndUrl)).toBeUndefined();
  });
});

describe('a reading', () => {
  const SENT_MS = NOW_MS - 1_000;
  const including = (sentAtMs: number) => aReading({ includedWrites: new Map([[COMPUTE.computeId, sentAtMs]]) });

  const APPLIED = { minCu: 2, maxCu: 4 };
  const applied = (fields: Partial<ComputeRecord> = {}) =>
    new Map([[COMPUTE.computeId, aRecord({ lastApplied: APPLIED, ...fields })]]);

  it.each([
    ['nothing was ever written', aReading(), applied(), COMPUTE],
    ['there is no record', aReading(), new Map(), COMPUTE],
    ['it names the write', including(SENT_MS), applied({ lastSentAtMs: SENT_MS }), COMPUTE],
    ['it began long after the write', aReading(), applied({ lastSentAtMs: NOW_MS - 15_000 }), COMPUTE],
    ['it may not include the write', aReading(), applied({ lastSentAtMs: SENT_MS }), { ...COMPUTE, ...APPLIED }],
    [
      'it names an earlier write',
      including(SENT_MS - 60_000),
      applied({ lastSentAtMs: NOW_MS + 1 }),
      { ...COMPUTE, ...APPLIED },
    ],
    ['a write is pending', aReading(), applied({ lastSentAtMs: SENT_MS, intent: {} as Intent }), COMPUTE],
  ])('has the changes that ebb has applied since: %s', (_, reading, records, compute) => {
    expect(withAppliedSince(reading, records).computes).toEqual([compute]);
  });

  describe('read again', () => {
    const OLDER = { code: 'unavailable', route: '', message: 'away' } as const;
    const now = { ...COMPUTE, maxCu: 8 };
    const apiOf = (answer: ApiResult<ComputeList>, asked: string[] = []) => {
      const live = {
        async listComputes({ projectId }: Pick<Project, 'projectId'>) {
          asked.push(projectId);
          return answer;
        },
      } as unknown as ControlApi;
      return createReadingsApi(
        { projects: [aReading(), aReading({ project: OTHER, computes: [] })], unread: ['p-unread'] },
        async () => ({ ok: true, value: live }),
        (operationsFrom) => ({ operationsFrom }),
      );
    };

    it('is not asked for names of branches where daemons store them with what else is wanted', async () => {
      const { branchName: _name, branchRoles: _roles, ...unnamed } = COMPUTE;
      const api = createReadingsApi(
        { projects: [aReading({ computes: [unnamed] })], asksBranches: false },
        async () => Promise.reject(new Error('the API is asked')),
        (operationsFrom) => ({ operationsFrom }),
      );
      const { computes, errors } = await readFleet({ api, readBranches: true });
      expect([computes, errors]).toEqual([[unnamed], []]);
    });

    it('is asked for alone', async () => {
      const asked: string[] = [];
      const api = apiOf({ ok: true, value: { computes: [now], unreadable: [] } }, asked);
      api.readAgain([PROJECT.projectId]);
      const { computes, errors } = await readFleet({ api, readBranches: false });
      expect([computes, asked]).toEqual([[now], [PROJECT.projectId]]);
      expect(errors.map(({ message }) => message)).toEqual([
        expect.stringContaining('1 of 3 projects are not read yet: p-unread'),
      ]);
    });

    it('is shown as it was stored where that is allowed and it cannot be read', async () => {
      const api = apiOf({ ok: false, error: OLDER });
      const failed: unknown[] = [];
      api.readAgain([PROJECT.projectId], (error) => failed.push(error));
      expect((await readFleet({ api, readBranches: true })).computes).toEqual([COMPUTE]);
      expect(failed).toEqual([OLDER]);
      api.readAgain([PROJECT.projectId]);
      const { projectId } = PROJECT;
      const { errors } = await readFleet({ api, readBranches: true });
      expect(errors).toContainEqual({ account: 'default', projectId, ...OLDER });
    });
  });
});
