import { expect, it } from 'vitest';
import { announcementOfRestart, type ToldBeforeDeps } from '../../src/app/apply/told-before.ts';
import { digestKey, SENT_DIGESTS } from '../../src/app/notifications/sent-digests.ts';
import type { Outages } from '../../src/app/telemetry/outages.ts';
import type { Receiver } from '../../src/domain/notifications/notification.ts';
import type { Action } from '../../src/domain/plan/plan.ts';
import type { ComputeRecord, RestartCause } from '../../src/domain/records/compute-record.ts';
import type { AccountStatus, ControlApi } from '../../src/ports/control-api.ts';
import type { Store } from '../../src/ports/store.ts';
import { aCompute, aRecord, aSchedule, at, currentRules } from '../support/builders.ts';
import { createSteppedClock } from '../support/simulated/clock.ts';
import { createMemoryStore } from '../support/simulated/store.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const EIGHT = at('2026-03-02T08:00:00Z');
const compute = aCompute({ computeId: 'ep-1' });
const action = { kind: 'update', fields: { minCu: 1, maxCu: 2 }, disconnects: true, policy: 'office-hours' } as Action;

interface Given extends Partial<ToldBeforeDeps> {
  nowMs?: number;
  record?: ComputeRecord;
  cause?: RestartCause;
  /** Fields of the digest that announced the slot of 08:00. */
  told?: object;
  why?: string;
  raises?: boolean;
  boundaryMs?: number;
  approvedAtMs?: number[];
  /** The stored records; by default none, so that the records that this daemon has read count. */
  records?: Store['records'];
  store?: Store;
}

/** Outages of a daemon: the control API's current one, and one that has ended. */
function outagesOf({ away, ended = [] }: { away?: string; ended?: [string, { message: string; atMs: number }][] }) {
  const current = new Map(away === undefined ? [] : [['control API', away]]);
  return { current: () => current, ended: () => new Map(ended) } as unknown as Outages;
}

async function toldBefore({
  nowMs = EIGHT + 6 * MINUTE_MS,
  record = aRecord(),
  cause = 'boundary',
  told = {},
  why,
  raises = true,
  boundaryMs = EIGHT,
  approvedAtMs,
  records = async () => new Map(),
  store = { ...createMemoryStore(createSteppedClock(0, () => false)), records },
  ...more
}: Given = {}) {
  const rules = currentRules(aSchedule());
  const url = { from: 'text', text: 'http://127.0.0.1/' } as const;
  const receiver: Receiver = { ...{ name: 'ops', to: 'webhook', allowedOrigins: [], file: 'ebb.yaml' }, url };
  rules.current.notify = { receivers: [receiver], beforeMs: 15 * MINUTE_MS };
  const digest = {
    computeIds: ['ep-1', 'ep-2'],
    restartIds: ['ep-1', 'ep-2'],
    toMs: EIGHT,
    untilMs: EIGHT + 6 * HOUR_MS,
    ...told,
  };
  await SENT_DIGESTS.put(store, digestKey('ops', 'team-web', EIGHT), digest);
  const deps = {
    ...{ rules, store, clock: { now: () => nowMs }, startedAtMs: 0 },
    ...{ api: { accountStatus: () => [] }, fleet: { latestEvaluation: () => undefined, heldSpans: new Map() } },
    ...{
      slots: { limitBetween: () => 'free' },
      outages: outagesOf({}),
      overrides: { lastThawOf: () => undefined },
      ...more,
    },
  };
  const reasons = { cause, approvedAtMs, ...(why !== undefined && { why }), dueSinceMs: () => boundaryMs };
  return announcementOfRestart(deps as unknown as ToldBeforeDeps, { compute, record }, { ...action, raises }, reasons);
}

/** What is to be said of a restart after it, whoever was told before. */
async function untold(given: Given = {}) {
  const { announcedTo: _receivers, ...fields } = await toldBefore(given);
  return fields;
}

it('a restart was announced to the receivers whose digests have named its compute, also where it comes late', async () => {
  const named = { announcedTo: ['ops'] };
  expect(await toldBefore({ nowMs: EIGHT + MINUTE_MS })).toEqual(named);
  expect(await toldBefore()).toEqual({ ...named, late });
  // It was said to restart only if it is awake by then; it was not announced; a person has asked for another change.
  expect(await toldBefore({ told: { restartIds: ['ep-2'] } })).toEqual({});
  expect(await toldBefore({ told: { computeIds: ['ep-2'], restartIds: ['ep-2'] } })).toEqual({
    unannounced: 'boundary',
  });
  expect(await toldBefore({ cause: 'person' })).toEqual({});
});

it('nobody is known to have been told of a change that another cause makes long after the announced one', async () => {
  const other = { cause: 'other' as const, nowMs: EIGHT + 40 * MINUTE_MS };
  expect(await toldBefore(other)).not.toHaveProperty('announcedTo');
  expect(await toldBefore({ ...other, nowMs: EIGHT + MINUTE_MS })).toEqual({ announcedTo: ['ops'] });
  const approved = { ...other, approvedAtMs: [EIGHT], told: { isOfApproval: true } };
  expect(await toldBefore(approved)).toHaveProperty('announcedTo', ['ops']);
});

it('a restart that nobody was told of names what made it due, if that is known', async () => {
  const why = 'policy set 0123456789ab became current at 2026-03-02T10:50:00Z';
  const given = { nowMs: EIGHT + 3 * HOUR_MS, why };
  expect(await untold({ ...given, cause: 'other' })).toEqual({ unannounced: 'other', unannouncedWhy: why });
});

it('a restart that nobody is known to have been told of is not said to be unannounced after a loss of the store', async () => {
  const elsewhere = { computeIds: ['ep-2'], restartIds: ['ep-2'] };
  const lost = (lostAtMs: number, given: Given = {}) =>
    untold({ told: elsewhere, storeWatch: { lostAtMs: () => lostAtMs }, ...given });
  const lostAtMs = EIGHT - MINUTE_MS;
  expect(await lost(lostAtMs)).toEqual({ unannounced: 'boundary', announcementsLostAtMs: lostAtMs });
  const why = 'policy set 0123456789ab became current at 2026-03-02T07:50:00Z';
  const bySet = { unannounced: 'other', unannouncedWhy: why, announcementsLostAtMs: lostAtMs };
  expect(await lost(lostAtMs, { cause: 'other', why })).toEqual(bySet);
  // Nobody announces what a person asks for. What was to be announced since the loss was not lost.
  expect(await lost(lostAtMs, { cause: 'person' })).toEqual({ unannounced: 'person' });
  expect(await lost(EIGHT - HOUR_MS)).toEqual({ unannounced: 'boundary' });
  const record = aRecord({ lastDisruption: { atMs: EIGHT - 30_000, lowered: false } });
  expect(await lost(lostAtMs, { record })).toEqual({ unannounced: 'boundary' });
});

const late = { owner: 'team-web', slotMs: EIGHT, announcedAtMs: EIGHT, restarts: 2 };
const unseen = { limitBetween: () => 'unseen' as const };

it('an announced restart is late after two minutes, unless a limit has spread the restarts', async () => {
  expect(await untold({ nowMs: EIGHT + 2 * MINUTE_MS })).toEqual({});
  expect(await untold()).toEqual({ late });
  const slots = (refusedMs: number) => ({
    limitBetween: (_policy: string, fromMs: number, toMs: number) =>
      fromMs <= refusedMs && refusedMs <= toMs ? ('reached' as const) : ('free' as const),
  });
  expect(await untold({ slots: slots(EIGHT + MINUTE_MS) })).toEqual({});
  // After an outage the limit spreads what is late already.
  expect(await untold({ slots: slots(EIGHT + 5 * MINUTE_MS) })).toEqual({ late });
});

it('to a daemon that asked for no slot at that time, it is not late if others were restarted in time; what a person asks for now never is', async () => {
  const begunAt = (atMs: number, account?: string) => ({
    heldSpans: new Map(),
    latestEvaluation: (id: string) =>
      id === 'ep-2'
        ? {
            compute: aCompute({ computeId: id, ...(account !== undefined && { account }) }),
            record: aRecord({ lastDisruption: { atMs, lowered: false } }),
          }
        : undefined,
  });
  const why = 'the daemon was started at 2026-03-02T08:05:00Z';
  const startedAtMs = EIGHT + 5 * MINUTE_MS;
  const begun = (atMs: number, account?: string) =>
    untold({ startedAtMs, slots: unseen, fleet: begunAt(atMs, account) as unknown as ToldBeforeDeps['fleet'] });
  expect(await begun(EIGHT + 1_000)).toEqual({});
  expect(await begun(EIGHT - 1_000)).toEqual({ late: { ...late, why } });
  expect(await begun(EIGHT + 5 * MINUTE_MS)).toEqual({ late: { ...late, why } });
  expect(await begun(EIGHT + 1_000, 'elsewhere')).toEqual({ late: { ...late, why } });
  expect(await untold({ cause: 'person' })).toEqual({});
  // One that has run since before the boundary, and takes over in the middle.
  const fleet = begunAt(EIGHT + 1_000) as unknown as ToldBeforeDeps['fleet'];
  expect(await untold({ startedAtMs: 0, slots: unseen, fleet })).toEqual({});
  expect(await untold({ startedAtMs: 0, fleet })).toEqual({ late });
});

it('what a limit has spread is late nevertheless if the platform held it as it became late, such as by an operation', async () => {
  const slots = { limitBetween: () => 'reached' as const };
  const heldFor = (sinceMs: number, untilMs: number) => {
    const span = { sinceMs, untilMs, message: 'an operation of this compute is under way' };
    const fleet = {
      latestEvaluation: () => undefined,
      heldSpans: new Map([['ep-1', span]]),
    } as unknown as ToldBeforeDeps['fleet'];
    return untold({ slots, fleet });
  };
  const why = 'still at 2026-03-02T08:05:00Z, an operation of this compute is under way';
  expect(await heldFor(EIGHT - MINUTE_MS, EIGHT + 5 * MINUTE_MS)).toEqual({ late: { ...late, why } });
  expect(await heldFor(EIGHT - MINUTE_MS, EIGHT + MINUTE_MS)).toEqual({});
  // The restart of another compute in its project, which had its turn first.
  expect(await heldFor(EIGHT + 110_000, EIGHT + 125_000)).toEqual({});
  expect(await heldFor(EIGHT + 4 * MINUTE_MS, EIGHT + 5 * MINUTE_MS)).toEqual({});
});

it('what a limit has spread is late nevertheless if it had failed, or if something was away', async () => {
  const slots = { limitBetween: () => 'reached' as const };
  const failure = { count: 1, desired: {}, message: '503: busy', lastAtMs: EIGHT + MINUTE_MS };
  const outages = outagesOf({ ended: [['Redis', { message: 'gone', atMs: EIGHT + MINUTE_MS }]] });
  const why = async (given: Parameters<typeof untold>[0]) => (await untold({ slots, ...given })).late?.why;
  expect(await untold({ slots, startedAtMs: EIGHT + MINUTE_MS })).toEqual({});
  expect(await why({ record: aRecord({ failures: { size: failure } }) })).toBe('it had failed: 503: busy');
  expect(await why({ outages })).toMatch(/^Redis was not available until/);
  // This daemon has had no answer yet: another one has read the project.
  expect(await why({ outages: outagesOf({ away: '503' }) })).toBe('control API was not available: 503');
});

it('a key that was refused or missing since the announced instant has delayed a restart, whatever a limit has spread', async () => {
  const nowMs = EIGHT + 6 * MINUTE_MS;
  const why = async (keyTrouble: AccountStatus['keyTrouble'], account = compute.account) => {
    const accounts: AccountStatus[] = [{ account, key: 'valid', ...(keyTrouble && { keyTrouble }) }];
    const api = { accountStatus: () => accounts } as unknown as ControlApi;
    return (await untold({ nowMs, slots: { limitBetween: () => 'reached' }, api })).late?.why;
  };
  const refused = { state: 'refused', endedAgoMs: MINUTE_MS } as const;
  const until = `the API key of account ${compute.account} was refused until 2026-03-02T08:05:00Z`;
  expect(await why(refused)).toBe(until);
  expect(await why({ state: 'missing' })).toBe(`the API key of account ${compute.account} was missing`);
  // It worked again before the announced instant; it is that of another account; there was none.
  expect(await why({ ...refused, endedAgoMs: 7 * MINUTE_MS })).toBeUndefined();
  expect(await why(refused, 'elsewhere')).toBeUndefined();
  expect(await why(undefined)).toBeUndefined();
});

it('it says how many of the owner were not changed by then, where that is known', async () => {
  const evaluated = (record: ComputeRecord) => ({ compute, record });
  const left = async (of: Record<string, ReturnType<typeof evaluated>>) => {
    const fleet = {
      heldSpans: new Map(),
      latestEvaluation: (id: string) => of[id],
    } as unknown as ToldBeforeDeps['fleet'];
    return (await untold({ fleet })).late?.left;
  };
  const waits = evaluated(aRecord({ lastDisruption: { atMs: EIGHT - HOUR_MS, lowered: false } }));
  const restarted = evaluated(aRecord({ lastDisruption: { atMs: EIGHT + 1_000, lowered: false } }));
  const changed = evaluated(aRecord({ lastChanges: { size: { answeredAtMs: EIGHT + 1_000 } } as never }));
  expect(await left({ 'ep-1': waits, 'ep-2': waits })).toBe(2);
  expect(await left({ 'ep-1': waits, 'ep-2': restarted })).toBe(1);
  expect(await left({ 'ep-1': waits, 'ep-2': changed })).toBe(1);
  expect(await left({ 'ep-1': waits })).toBeUndefined();
  // A limit holds the size back, so the timeout was changed alone.
  const timeout = evaluated(aRecord({ lastChanges: { suspend_timeout: { answeredAtMs: EIGHT + 1_000 } } as never }));
  expect(await left({ 'ep-1': waits, 'ep-2': timeout })).toBe(2);
});

it('what another daemon has restarted since this one has read it does not count as left', async () => {
  const waits = aRecord({ lastDisruption: { atMs: EIGHT - HOUR_MS, lowered: false } });
  const fleet = {
    heldSpans: new Map(),
    latestEvaluation: (computeId: string) => ({ compute: { ...compute, computeId }, record: waits }),
  } as unknown as ToldBeforeDeps['fleet'];
  const restarted = aRecord({ lastDisruption: { atMs: EIGHT + 1_000, lowered: false } });
  const left = async (stored: [string, ComputeRecord][]) =>
    (await untold({ fleet, records: async () => new Map(stored) })).late?.left;
  expect(await left([])).toBe(2);
  expect(await left([['ep-2', restarted]])).toBe(1);
  // Late restarts that begin together have one count, whichever of them is stored first.
  const store = {
    ...createMemoryStore(createSteppedClock(0, () => false)),
    records: async () => new Map([['ep-2', restarted]]),
  };
  const together = await Promise.all([untold({ fleet, store }), untold({ fleet, store })]);
  expect(together.map(({ late }) => late?.left)).toEqual([1, 1]);
});

it('how many are left of a slot is counted once, and kept as long as its digests', async () => {
  const waits = aRecord({ lastDisruption: { atMs: EIGHT - HOUR_MS, lowered: false } });
  const latestEvaluation = (computeId: string) => ({ compute: { ...compute, computeId }, record: waits });
  const fleet = { heldSpans: new Map(), latestEvaluation } as unknown as ToldBeforeDeps['fleet'];
  const stored = new Map<string, ComputeRecord>();
  const store = { ...createMemoryStore(createSteppedClock(0, () => false)), records: async () => stored };
  const left = async (nowMs: number) =>
    (await untold({ fleet, store, nowMs, told: { untilMs: EIGHT + 24 * HOUR_MS } })).late?.left;
  expect(await left(EIGHT + HOUR_MS)).toBe(2);
  stored.set('ep-2', aRecord({ lastDisruption: { atMs: EIGHT + 1_000, lowered: false } }));
  expect(await left(EIGHT + 6 * HOUR_MS)).toBe(2);
  expect(await left(EIGHT + 6 * HOUR_MS + 1)).toBe(1);
});

it('restarts between the beginning of its slot and the announced instant are those of an earlier boundary', async () => {
  const announcedAtMs = EIGHT + 12 * MINUTE_MS;
  const told = { instants: { 'ep-1': announcedAtMs, 'ep-2': announcedAtMs }, toMs: announcedAtMs };
  const record = aRecord({ lastDisruption: { atMs: EIGHT + 6 * MINUTE_MS, lowered: false } });
  const fleet = {
    heldSpans: new Map(),
    latestEvaluation: () => ({ compute, record }),
  } as unknown as ToldBeforeDeps['fleet'];
  const given = { nowMs: announcedAtMs + 3 * MINUTE_MS, told, record, fleet };
  expect(await untold(given)).toEqual({ late: { ...late, announcedAtMs, left: 2 } });
});

it('a restart is late if it comes later than it was announced itself, though others were announced for later', async () => {
  const waits = {
    instants: { 'ep-1': EIGHT + 7 * MINUTE_MS, 'ep-2': EIGHT + 12 * MINUTE_MS },
    toMs: EIGHT + 12 * MINUTE_MS,
  };
  const span = { announcedAtMs: EIGHT + 7 * MINUTE_MS, announcedToMs: EIGHT + 12 * MINUTE_MS };
  const spanLate = { ...late, ...span };
  const outages = outagesOf({ ended: [['control API', { message: '503', atMs: EIGHT + 9 * MINUTE_MS }]] });
  const given = { told: waits, outages, slots: { limitBetween: () => 'reached' as const } };
  const why = 'control API was not available until 2026-03-02T08:09:00Z: 503';
  expect(await untold({ ...given, nowMs: EIGHT + 10 * MINUTE_MS })).toEqual({ late: { ...spanLate, why } });
  expect(await untold({ ...given, nowMs: EIGHT + 9 * MINUTE_MS })).toEqual({});
  // Nothing was in the way but a limit.
  expect(await untold({ ...given, outages: outagesOf({}), nowMs: EIGHT + 10 * MINUTE_MS })).toEqual({});
  const evaluated = (computeId: string, atMs: number) => ({
    compute: { ...compute, computeId },
    record: aRecord({ lastDisruption: { atMs, lowered: false } }),
  });
  const of = { 'ep-1': evaluated('ep-1', 0), 'ep-2': evaluated('ep-2', EIGHT + 8 * MINUTE_MS) };
  const fleet = { heldSpans: new Map(), latestEvaluation: (id: keyof typeof of) => of[id] };
  const left = async (restartedAtMs: number) => {
    of['ep-1'] = evaluated('ep-1', restartedAtMs);
    const deps = { ...given, fleet: fleet as unknown as ToldBeforeDeps['fleet'] };
    return (await untold({ ...deps, nowMs: EIGHT + 10 * MINUTE_MS })).late?.left;
  };
  expect(await left(EIGHT + MINUTE_MS)).toBe(2);
  expect(await left(EIGHT + 8 * MINUTE_MS)).toBe(1);
});

it('hours later only the boundary itself is what was announced', async () => {
  const nowMs = EIGHT + 2 * HOUR_MS;
  expect(await untold({ nowMs })).toEqual({ late });
  for (const cause of ['person', 'other'] as const)
    expect(await untold({ nowMs, cause })).toEqual({ unannounced: cause });
});

it('it says what was in the way since the announced instant, as far as it is known', async () => {
  const ended = (atMs: number) => outagesOf({ ended: [['control API', { message: '503', atMs }]] });
  const failure = { count: 1, desired: {}, message: '500: no', lastAtMs: EIGHT + MINUTE_MS };
  const why = async (given: Parameters<typeof untold>[0]) => (await untold(given)).late?.why;
  expect(await why({ startedAtMs: EIGHT + 5 * MINUTE_MS })).toBe('the daemon was started at 2026-03-02T08:05:00Z');
  expect(await why({ outages: ended(EIGHT + MINUTE_MS) })).toBe(
    'control API was not available until 2026-03-02T08:01:00Z: 503',
  );
  expect(await why({ outages: ended(EIGHT - MINUTE_MS) })).toBeUndefined();
  const thaw = { atMs: EIGHT + 3 * MINUTE_MS, message: 'frozen by bob until 2026-03-02T08:03:00Z: migration' };
  const thawed = (minutes: number) => ({
    outages: ended(EIGHT + minutes * MINUTE_MS),
    overrides: { lastThawOf: () => thaw } as unknown as ToldBeforeDeps['overrides'],
  });
  expect(await why(thawed(1))).toBe(thaw.message);
  expect(await why(thawed(4))).toBe('control API was not available until 2026-03-02T08:04:00Z: 503');
  thaw.atMs = EIGHT - MINUTE_MS;
  expect(await why(thawed(-2))).toBeUndefined();
  expect(await why({ record: aRecord({ failures: { size: failure } }) })).toBe('it had failed: 500: no');
  const accounts: AccountStatus[] = [
    { account: compute.account, key: 'valid', limit: { level: 4, agoMs: 0, normalInMs: 1 } },
  ];
  expect(await why({ api: { accountStatus: () => accounts } as unknown as ControlApi })).toBe(
    'less of the rate limit is used after answers 429: requests are spread evenly, at 1/4 of the rate',
  );
  expect(await why({ caller: { who: 'ann', requestId: 'r' } })).toBe('a person has applied it');
});

it('who was told that a compute gets another timeout only was not told of a restart', async () => {
  const nowMs = EIGHT + MINUTE_MS;
  const asleep = { restartIds: ['ep-2'] };
  const timeoutOnly = { ...asleep, timeoutIds: ['ep-1'] };
  expect(await untold({ nowMs, told: timeoutOnly })).toEqual({ unannounced: 'boundary' });
  // The message said that this one restarts if it is awake by then: so its restart is neither unannounced nor late.
  expect(await untold({ nowMs, told: asleep })).toEqual({});
  expect(await untold({ told: asleep })).toEqual({});
  expect(await untold({ nowMs, told: { timeoutIds: ['ep-1'] } })).toEqual({});
});

it('a lowering is not the late raise that was announced, nor is what a later boundary makes due', async () => {
  const raised = { raiseIds: ['ep-1', 'ep-2'], lowerIds: [] };
  expect(await untold({ told: raised })).toEqual({ late });
  expect(await untold({ told: raised, raises: false })).toEqual({ unannounced: 'boundary' });
  expect(await untold({ told: raised, boundaryMs: EIGHT + 5 * MINUTE_MS })).toEqual({ unannounced: 'boundary' });
  // Waves may come a little later than they were announced.
  expect(await untold({ told: raised, boundaryMs: EIGHT + MINUTE_MS })).toEqual({ late });
});

it('an announced raise that was made seconds too early is over', async () => {
  const early = aRecord({ lastDisruption: { atMs: EIGHT - 5_000, lowered: false } });
  expect(await untold({ record: early })).toEqual({ unannounced: 'boundary' });
  // A lowering by an earlier boundary, or one long before, leaves it open.
  const lowered = aRecord({ lastDisruption: { atMs: EIGHT - 5_000, lowered: true } });
  const before = aRecord({ lastDisruption: { atMs: EIGHT - 5 * MINUTE_MS, lowered: false } });
  expect(await untold({ record: lowered })).toEqual({ late });
  expect(await untold({ record: before })).toEqual({ late });
  const fleet = {
    heldSpans: new Map(),
    latestEvaluation: () => ({ compute, record: early }),
  } as unknown as ToldBeforeDeps['fleet'];
  expect((await untold({ record: lowered, fleet })).late?.left).toBe(0);
});

it('an announced restart that comes seconds too early was announced', async () => {
  const told = { raiseIds: ['ep-1', 'ep-2'], lowerIds: [] };
  const nowMs = EIGHT - 15_000;
  expect(await untold({ told, nowMs })).toEqual({});
  expect(await untold({ told, nowMs, raises: false })).toEqual({ unannounced: 'boundary' });
  expect(await untold({ told, nowMs: EIGHT - 2 * MINUTE_MS })).toEqual({ unannounced: 'boundary' });
  for (const cause of ['person', 'other'] as const)
    expect(await untold({ told, nowMs, cause })).toEqual({ unannounced: cause });
});

it('what was announced at an approval are the restarts by that set alone, of the computes that it named, however late they come', async () => {
  const told = { isOfApproval: true, instants: { 'ep-1': EIGHT + 5_000 }, toMs: EIGHT + 5_000, raiseIds: ['ep-1'] };
  const why = 'policy set 0123456789ab became current at 2026-03-02T08:00:05Z, approved by ann';
  const given: Given = { told, cause: 'other', why, nowMs: EIGHT + MINUTE_MS, approvedAtMs: [EIGHT + 2_000, EIGHT] };
  const unannounced = { unannounced: 'other', unannouncedWhy: why };
  expect(await untold(given)).toEqual({});
  expect(await untold({ ...given, told: { ...told, computeIds: ['ep-2'], restartIds: ['ep-2'] } })).toEqual(
    unannounced,
  );
  expect(await untold({ ...given, raises: false })).toEqual(unannounced);
  // It has been restarted since; it is due by another approved set, or by none.
  const restarted = aRecord({ lastDisruption: { atMs: EIGHT + 8_000, lowered: false } });
  expect(await untold({ ...given, record: restarted })).toEqual(unannounced);
  expect(await untold({ ...given, approvedAtMs: [EIGHT - MINUTE_MS] })).toEqual(unannounced);
  const { approvedAtMs: _none, why: _set, ...byOther } = given;
  expect(await untold(byOther)).toEqual({ unannounced: 'other' });
  // A limit spreads them.
  const slots = { limitBetween: () => 'reached' as const };
  expect(await untold({ ...given, slots, nowMs: EIGHT + 3 * HOUR_MS })).toEqual({});
});
