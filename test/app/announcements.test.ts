import { expect, it } from 'vitest';
import { startAnnouncements } from '../../src/app/announcements/announcements.ts';
import { beginAtBoundary } from '../../src/app/fleet/at-boundary.ts';
import { createFleet } from '../../src/app/fleet/fleet.ts';
import { ownerByCurrentRules } from '../../src/app/fleet/owner-now.ts';
import { recordEntries } from '../../src/app/notifications/notify.ts';
import { announcementOf } from '../../src/app/notifications/sent-digests.ts';
import { createPolicySets } from '../../src/app/rollout/write-permission.ts';
import { type Compute, type Size, settingsOf } from '../../src/domain/compute/compute.ts';
import { evaluate } from '../../src/domain/evaluate/evaluate.ts';
import type { MessageDocument, NotifyRules, Receiver } from '../../src/domain/notifications/notification.ts';
import { withReadyWaves } from '../../src/domain/policy/compiled-policies.ts';
import type { Policy } from '../../src/domain/policy/policy.ts';
import { compareHerdPositions, type HerdPosition, herdPosition } from '../../src/domain/policy/waves.ts';
import type { ComputeRecord } from '../../src/domain/records/compute-record.ts';
import type { AccountStatus, Project } from '../../src/ports/control-api.ts';
import type { OutboxEntry } from '../../src/ports/outbox.ts';
import { aCompute, aRecord, aSchedule, at, aWindow, currentRules, FREE_SLOTS } from '../support/builders.ts';
import { memoryDocumentStore } from '../support/memory-documents.ts';
import { aSelector } from '../support/selectors.ts';

const MINUTE_MS = 60_000;
/** A Monday; the window of `aSchedule` ends at 18:00. */
const EVENING = at('2026-03-02T18:00:00Z');
const OPS: Receiver = {
  ...{ name: 'ops', to: 'webhook', allowedOrigins: [], file: 'ebb.yaml' },
  url: { from: 'text', text: 'http://127.0.0.1/' },
};

/** A primary, and a replica of the same branch that only the policy of `shop` selects. */
const primary = aCompute({ computeId: 'ep-primary', minCu: 1, maxCu: 4 });
const replica = aCompute({ computeId: 'ep-replica', type: 'read_only', minCu: 1, maxCu: 4 });
const disruption = { lower: { when: 'any', atDeadline: 'apply' } } as const;

const OF_SHOP = [
  aSchedule({ name: 'all', disruption }),
  aSchedule({ name: 'of-shop', owner: 'shop', priority: 1, select: aSelector({ types: ['read_only'] }), disruption }),
];

function start({
  policies = OF_SHOP,
  computes = [primary, replica],
  ...notify
}: { policies?: readonly Policy[]; computes?: readonly Compute[] } & Partial<NotifyRules> = {}) {
  const rules = currentRules(...policies);
  rules.current.notify = { receivers: [OPS], beforeMs: 15 * MINUTE_MS, ...notify };
  let nowMs = EVENING - 20 * MINUTE_MS;
  const rounds: (() => unknown)[] = [];
  const clock = {
    ...{
      now: () => nowMs,
      monotonicMs: () => nowMs,
      realDelayMs: (instantMs: number) => Math.max(0, instantMs - nowMs),
    },
    every: (_ms: number, round: () => unknown) => {
      rounds.push(round);
      return { close: async () => {} };
    },
  };
  const fleet = createFleet({ clock } as unknown as Parameters<typeof createFleet>[0]);
  const { account, projectId, projectName: name, regionId } = primary;
  const project = { account, projectId, name, regionId, updatedAtMs: 0 } as Project;
  fleet.cache({ project, computes: [...computes], unreadable: [], readAtMs: nowMs, readAtMonotonicMs: nowMs });
  const put = (compute: Compute, known: Partial<ComputeRecord> = {}) => {
    const record = aRecord({ lastApplied: settingsOf(compute), ...known });
    const situation = { policies: rules.current.policies, compute, record, nowMs };
    fleet.putEvaluated({ compute, record, ...evaluate({ ...situation, mode: 'enforce', projectBusy: false }) });
  };
  for (const compute of computes) put(compute);
  const queued: OutboxEntry[] = [];
  /** What the store has, if another daemon has written later. */
  const stored = new Map<string, ComputeRecord>();
  const away = new Map<string, string>();
  const accounts: AccountStatus[] = [];
  let decisions = 0;
  const deps = {
    ...{ clock, fleet, rules, mode: 'enforce', leaderLease: { isHeld: () => true } },
    ...{ overrides: { holds: [], freezes: [] }, slots: FREE_SLOTS },
    samples: {
      historyOf() {
        decisions += 1;
        return new Map();
      },
    },
    sets: createPolicySets({ stages: false, accepted: undefined }),
    api: { accountStatus: () => accounts },
    ...{
      outages: { current: () => away, sinceMs: () => EVENING - 18 * MINUTE_MS },
      knownDigests: { current: new Map() },
    },
    store: {
      ...memoryDocumentStore(),
      records: async () => stored,
      appendOutbox: async (entries: OutboxEntry[]) =>
        void queued.push(...entries.filter(({ id }) => queued.every((one) => one.id !== id))),
    },
    runInBackground: (_task: string, round: () => Promise<void>) => round(),
  };
  /** Again: another daemon of the group is the leader now. */
  const lead = () => {
    rounds.length = 0;
    startAnnouncements(deps as unknown as Parameters<typeof startAnnouncements>[0]);
  };
  lead();
  const search = async (atMs: number) => {
    nowMs = atMs;
    for (const round of rounds) await round();
  };
  const seen = { rules, fleet, queued, stored, away, accounts };
  return { ...seen, put, lead, search, store: deps.store, decisions: () => decisions };
}

it('changes that are coming are decided once for each evaluation, and told when their time has come', async () => {
  const { rules, queued, search, decisions } = start();
  await search(EVENING - 16 * MINUTE_MS);
  expect([queued.length, decisions()]).toEqual([0, 0]);
  await search(EVENING - 15 * MINUTE_MS);
  // Both are of shop, as are all computes of a branch.
  expect(queued.map(({ subject }) => subject)).toEqual(['change_coming shop']);
  const once = decisions();
  await search(EVENING - 14 * MINUTE_MS);
  await search(EVENING - 13 * MINUTE_MS);
  expect(decisions()).toBe(once);
  rules.current.policies = { ...rules.current.policies };
  await search(EVENING - 12 * MINUTE_MS);
  expect(decisions()).toBe(2 * once);
});

it('a message about coming changes says what stops them now: an outage, or a key that is refused or missing', async () => {
  const textWith = async (given: { away?: string; keyTrouble?: AccountStatus['keyTrouble']; account?: string }) => {
    const { queued, search, away, accounts } = start();
    if (given.away !== undefined) away.set(given.away, '503');
    const { keyTrouble, account = 'default' } = given;
    accounts.push({ account, key: 'valid', ...(keyTrouble && { keyTrouble }) });
    await search(EVENING - 15 * MINUTE_MS);
    return queued.map(({ body }) => (JSON.parse(body) as MessageDocument).text).join();
  };
  const text = await textWith({});
  const outage = (name: string) =>
    `; the ${name} has not been available since 2026-03-02T17:42:00Z: they can't be made until it is available`;
  for (const away of ['control API', 'control API for default'])
    expect(await textWith({ away })).toBe(`${text}${outage(away)}`);
  expect(await textWith({ keyTrouble: { state: 'refused' } })).toBe(
    `${text}; the API key of account default is refused: they can't be made until it works`,
  );
  // Another account's, or over.
  for (const given of [
    { away: 'control API for elsewhere' },
    { keyTrouble: { state: 'missing' }, account: 'elsewhere' } as const,
    { keyTrouble: { state: 'missing', endedAgoMs: 0 } } as const,
  ])
    expect(await textWith(given)).toBe(text);
});

it('changes at a boundary come first for a minute: in an outage, what comes next is told in time', async () => {
  const toldAt = async (boundaryMs: number) => {
    const { fleet, queued, search } = start();
    beginAtBoundary(fleet, boundaryMs, 'default');
    await search(EVENING - 15 * MINUTE_MS);
    return queued.map(({ subject }) => subject);
  };
  expect(await toldAt(EVENING - 15.5 * MINUTE_MS)).toEqual([]);
  expect(await toldAt(EVENING - 17 * MINUTE_MS)).toEqual(['change_coming shop']);
});

it('changes at boundaries that follow each other come first for a minute in all', async () => {
  const { fleet, queued, search } = start();
  for (const minutes of [16.5, 16]) beginAtBoundary(fleet, EVENING - minutes * MINUTE_MS, 'default');
  await search(EVENING - 16 * MINUTE_MS);
  await search(EVENING - 15.2 * MINUTE_MS);
  beginAtBoundary(fleet, EVENING - 15 * MINUTE_MS, 'default');
  expect(queued).toEqual([]);
  await search(EVENING - 15 * MINUTE_MS);
  expect(queued.map(({ subject }) => subject)).toEqual(['change_coming shop']);
});

it('who is told of a compute follows from its whole branch, for coming changes and for what has happened', async () => {
  const { rules, fleet, queued, search } = start();
  await search(EVENING - 10 * MINUTE_MS);
  await search(EVENING - 9 * MINUTE_MS);
  const before = aRecord({ lastApplied: { minCu: 1, maxCu: 4 } });
  const mark = { seenAtMs: EVENING, fields: { minCu: 2, maxCu: 8 }, raises: true };
  const after = { ...before, manual: { size: mark } };
  const entries = recordEntries(
    rules.current,
    { compute: primary, before, after, nowMs: EVENING },
    ownerByCurrentRules({ rules, fleet }),
  );
  const owners = [...queued, ...entries].map(({ body }) => (JSON.parse(body) as { owner: string }).owner);
  expect(owners).toEqual(['shop', 'shop']);
});

/** Computes of which 70 are raised at 18:00, and 16 lowered: 4 of these are awake. */
const EVENING_OF_WEB = [
  ...Array.from({ length: 70 }, (_, at) =>
    aCompute({ computeId: `ep-up-${at}`, minCu: 0.25, maxCu: 0.25, state: 'idle' }),
  ),
  ...Array.from({ length: 16 }, (_, at) =>
    aCompute({ computeId: `ep-down-${at}`, minCu: 2, maxCu: 4, state: at < 4 ? 'active' : 'idle' }),
  ),
].map((compute) => ({ ...compute, branchId: `br-${compute.computeId}` }));

const WEB = aSchedule({ name: 'web-hours', owner: 'team-web', disruption });
const messagesIn = (queued: readonly OutboxEntry[]) => queued.map(({ body }) => JSON.parse(body) as MessageDocument);

it('raises before an opening are announced once their waves are fixed, those of all waves in one message', async () => {
  const opensMs = at('2026-03-03T08:00:00Z');
  const awake = [1, 2].map((id) =>
    aCompute({ computeId: `ep-${id}`, branchId: `br-${id}`, minCu: 0.25, maxCu: 1, state: 'active' }),
  );
  const windows = [
    { at: [aWindow()], size: { minCu: 1, maxCu: 4 }, readyLeadMs: 180_000, readyInWaves: true as const },
  ];
  const raise = { raise: { when: 'any', atDeadline: 'apply' } } as const;
  const ready = aSchedule({ owner: 'web', windows, disruption: raise });
  const { rules, queued, put, search } = start({ policies: [ready], computes: awake });
  await search(opensMs - 25 * MINUTE_MS);
  for (const compute of awake) put(compute);
  await search(opensMs - 10 * MINUTE_MS);
  expect(messagesIn(queued)).toEqual([]);
  const { policies } = rules.current;
  const [first, second] = awake.map((compute) => herdPosition(0, compute)).toSorted(compareHerdPositions);
  const waves = [
    { leadMs: 30_000, computes: 1, last: first as HerdPosition },
    { leadMs: 15_000, computes: 1, last: second as HerdPosition },
  ];
  rules.current.policies = withReadyWaves(policies, [
    { account: primary.account, opensAtMs: opensMs, setHash: policies.set.hash, waves },
  ]);
  for (const compute of awake) put(compute);
  await search(opensMs - 9 * MINUTE_MS);
  await search(opensMs - 8 * MINUTE_MS);
  expect(messagesIn(queued)).toMatchObject([
    { changes: { computes: 2, raised: 2, from: '2026-03-03T07:59:30Z', to: '2026-03-03T07:59:45Z' } },
  ]);
});

it('a team gets one message for a boundary, at the lead that was asked for', async () => {
  const { queued, search } = start({ policies: [WEB], computes: EVENING_OF_WEB, statusUrl: 'https://ebb.example' });
  for (let minutes = 16; minutes > 0; minutes -= 1 / 4) await search(EVENING - minutes * MINUTE_MS);
  expect(messagesIn(queued)).toEqual([
    {
      ...{
        version: 1,
        id: expect.stringContaining(`change_coming:team-web:${EVENING}:`),
        kind: 'change_coming',
        at: '2026-03-02T17:45:00Z',
      },
      text: "2026-03-02T18:00:00Z, in 15m: 86 computes of team-web: 70 raised, 16 lowered; 4 restart, which disconnects their clients (ep-down-0, ep-down-1, ep-down-2, ep-down-3); others may, if awake by then (all: ebb plan --owner 'team-web' --at 2026-03-02T18:00:00Z)",
      ...{ owner: 'team-web', project: null, compute: null, policy: 'web-hours' },
      command: "ebb freeze --select computes=ep-down-0,ep-down-1,ep-down-2,ep-down-3 --for 2h --reason 'not now'",
      link: 'https://ebb.example/?owner=team-web',
      changes: {
        ...{ computes: 86, raised: 70, lowered: 16, disconnecting: 4 },
        ...{ from: '2026-03-02T18:00:00Z', to: '2026-03-02T18:00:00Z', list: expect.anything(), not_listed: 0 },
      },
    },
  ]);
});

it('the JSON of a message has each change, those that disconnect first', async () => {
  const computes = EVENING_OF_WEB.toReversed();
  const { queued, search } = start({ policies: [WEB], computes });
  await search(EVENING - 15 * MINUTE_MS);
  const [message] = messagesIn(queued);
  const list = message?.changes?.list ?? [];
  expect(list.map(({ compute }) => compute).toSorted()).toEqual(computes.map(({ computeId }) => computeId).toSorted());
  expect(list.map(({ disconnects }) => disconnects)).toEqual(list.map((_, index) => index < 4));
  expect(list.find(({ compute }) => compute === 'ep-down-0')).toEqual({
    ...{ project: 'p-one', compute: 'ep-down-0', at: '2026-03-02T18:00:00Z', policy: 'web-hours', disconnects: true },
    ...{ from: { min_cu: 2, max_cu: 4 }, to: { min_cu: 0.25, max_cu: 1 } },
  });
});

it('who was not in the message of a boundary follows in another, with the lead that is left', async () => {
  const [late, ...known] = EVENING_OF_WEB.toReversed().map((compute) => ({ ...compute, state: 'active' as const }));
  if (!late) throw new Error('no compute');
  const { queued, put, search } = start({ policies: [WEB], computes: known });
  await search(EVENING - 15 * MINUTE_MS);
  put(late);
  for (let minutes = 3; minutes > 0; minutes -= 1 / 4) await search(EVENING - minutes * MINUTE_MS);
  const [first, second, ...more] = messagesIn(queued);
  expect([first?.changes?.disconnecting, more]).toEqual([85, []]);
  expect(first?.text).toMatch(/ep-down-1\d.*, and 77 more\)$/);
  expect(first?.command).toBe("ebb plan --owner 'team-web' --at 2026-03-02T18:00:00Z");
  expect(second).toMatchObject({ compute: late.computeId, text: expect.stringContaining(', in 3m (web-hours)') });
});

it('one that was said to get another timeout only is told again once it is to restart', async () => {
  const timeoutOnly = aCompute({
    computeId: 'ep-a',
    branchId: 'br-a',
    minCu: 0.25,
    maxCu: 1,
    suspendTimeoutSeconds: 0,
  });
  const restarts = aCompute({ computeId: 'ep-b', branchId: 'br-b', minCu: 2, maxCu: 4 });
  const { queued, put, search } = start({ policies: [WEB], computes: [timeoutOnly, restarts] });
  await search(EVENING - 15 * MINUTE_MS);
  put({ ...timeoutOnly, maxCu: 4 });
  for (let minutes = 3; minutes > 0; minutes -= 1 / 4) await search(EVENING - minutes * MINUTE_MS);
  expect(messagesIn(queued)).toMatchObject([{ changes: { computes: 2, disconnecting: 1 } }, { compute: 'ep-a' }]);
});

it('a boundary is told as early as any other behind a nearer one, and once', async () => {
  const hours = (from: number, to: number, size: Size) => ({
    at: [aWindow({ startMinute: 18 * 60 + from, endMinute: 18 * 60 + to })],
    size,
  });
  const windows = [hours(-60, 0, { minCu: 1, maxCu: 4 }), hours(0, 6, { minCu: 2, maxCu: 2 })];
  const policy = aSchedule({ windows, disruption: { ...disruption, cooldownMs: 0 } });
  const compute = aCompute({ computeId: 'ep-a', branchId: 'br-a', minCu: 1, maxCu: 4 });
  const { queued, put, search } = start({ policies: [policy], computes: [compute] });
  for (let minutes = 16; minutes > 0; minutes -= 1 / 2) await search(EVENING - minutes * MINUTE_MS);
  await search(EVENING);
  const lastDisruption = { atMs: EVENING + 1_000, lowered: true, policy: policy.name };
  put({ ...compute, minCu: 2, maxCu: 2 }, { lastDisruption });
  for (let minutes = 0; minutes < 6; minutes += 1 / 2) await search(EVENING + minutes * MINUTE_MS);
  const [first, second, ...more] = messagesIn(queued);
  expect([first?.at, second?.at, more]).toEqual(['2026-03-02T17:45:00Z', '2026-03-02T17:51:00Z', []]);
  expect(second?.text).toMatch(/^ep-a will be changed from 2 to 0.25-1 CU at 2026-03-02T18:06:00Z, in 15m /);
});

it('one that was to be lowered is told again once it is to be raised instead, such as after a change by hand', async () => {
  const compute = aCompute({ computeId: 'ep-a', branchId: 'br-a', minCu: 2, maxCu: 4 });
  const { queued, put, search, store } = start({ policies: [WEB], computes: [compute] });
  await search(EVENING - 15 * MINUTE_MS);
  put({ ...compute, minCu: 0.25, maxCu: 0.25 });
  for (let minutes = 6; minutes > 0; minutes -= 1 / 4) await search(EVENING - minutes * MINUTE_MS);
  const [first, second, ...more] = messagesIn(queued);
  expect([first?.text, second?.text]).toEqual([
    expect.stringMatching(/^ep-a will be changed from 2-4 to 0.25-1 CU at 2026-03-02T18:00:00Z, in 15m /),
    expect.stringMatching(/^ep-a will be changed from 0.25 to 0.25-1 CU at 2026-03-02T18:00:00Z, in 6m /),
  ]);
  expect(more).toEqual([]);
  const raised = { computeId: 'ep-a', raises: true, sinceMs: 0, nowMs: EVENING };
  expect(await announcementOf(store as never, raised)).toMatchObject({ slotMs: EVENING, countedFor: ['ops'] });
});

it('computes that have woken since they were listed as asleep follow in one message, a quarter of the lead before', async () => {
  const { queued, put, search } = start({ policies: [WEB], computes: EVENING_OF_WEB });
  const wake = (computeId: string) => {
    const compute = EVENING_OF_WEB.find((one) => one.computeId === computeId);
    if (compute) put({ ...compute, state: 'active' });
  };
  await search(EVENING - 15 * MINUTE_MS);
  for (let minutes = 14; minutes > 0; minutes -= 1 / 4) {
    if (minutes === 12) wake('ep-down-8');
    if (minutes === 8) wake('ep-down-9');
    // Too late for the message: it is told afterwards.
    if (minutes === 2) wake('ep-down-10');
    await search(EVENING - minutes * MINUTE_MS);
  }
  const [, second, ...more] = messagesIn(queued);
  expect(more).toEqual([]);
  expect(second).toMatchObject({ at: '2026-03-02T17:56:15Z', changes: { computes: 2, disconnecting: 2 } });
  expect(second?.changes?.list.map(({ compute }) => compute)).toEqual(['ep-down-8', 'ep-down-9']);
});

it('a later message of a slot does not forget who was told', async () => {
  const [asleep, awake, late] = ['ep-a', 'ep-b', 'ep-c'].map((computeId) =>
    aCompute({ computeId, branchId: `br-${computeId}`, minCu: 2, maxCu: 4 }),
  ) as [Compute, Compute, Compute];
  const computes = [{ ...asleep, state: 'idle' as const }, awake];
  const { queued, put, search, store } = start({ policies: [WEB], computes });
  await search(EVENING - 15 * MINUTE_MS);
  put(late);
  for (let minutes = 14; minutes > 0; minutes -= 1 / 4) await search(EVENING - minutes * MINUTE_MS);
  expect(messagesIn(queued)).toMatchObject([{ changes: { computes: 2, lowered: 2 } }, { compute: 'ep-c' }]);
  const told = (computeId: string, raises: boolean) =>
    announcementOf(store, { computeId, raises, sinceMs: 0, nowMs: EVENING });
  expect(await told('ep-a', false)).toMatchObject({ atMs: EVENING });
  expect(await told('ep-b', false)).toMatchObject({ ownIds: ['ep-b', 'ep-c'] });
  expect([await told('ep-a', true), await told('ep-b', true)]).toEqual([undefined, undefined]);
});

it('a receiver that only a policy names is told of its changes alone', async () => {
  const policies = [
    WEB,
    aSchedule({
      name: 'nights',
      priority: 1,
      notify: ['dba'],
      select: aSelector({ computes: ['ep-down-*'] }),
      disruption,
    }),
  ];
  const receivers = [{ ...OPS, name: 'dba', kinds: ['test'] } as const];
  const { queued, search } = start({ policies, computes: EVENING_OF_WEB, receivers });
  await search(EVENING - 15 * MINUTE_MS);
  expect(messagesIn(queued)).toMatchObject([
    { policy: 'nights', changes: { computes: 16, lowered: 16, disconnecting: 4 } },
  ]);
});

const AWAKE = EVENING_OF_WEB.slice(-16).map((compute) => ({ ...compute, state: 'active' as const }));

it('what is told late is one message, though an approval or a boundary makes it known bit by bit', async () => {
  const { queued, put, search } = start({ policies: [WEB], computes: [] });
  let atMs = EVENING - 12 * MINUTE_MS;
  const round = async (seconds = 5) => {
    await search(atMs);
    atMs += seconds * 1000;
  };
  for (const compute of AWAKE.slice(0, 8)) {
    put(compute);
    await round();
  }
  expect(queued).toEqual([]);
  for (let rounds = 0; rounds < 8; rounds += 1) await round();
  expect(messagesIn(queued)).toMatchObject([{ at: '2026-03-02T17:48:55Z', changes: { disconnecting: 8 } }]);
  // What goes on and on is told once a minute.
  for (const compute of AWAKE.slice(8)) {
    put(compute);
    await round(15);
  }
  expect(messagesIn(queued).map(({ changes }) => changes?.disconnecting)).toEqual([8, 5]);
});

it('what another daemon has done since is not announced', async () => {
  const [done, coming] = AWAKE.slice(0, 2) as [Compute, Compute];
  const { queued, stored, search } = start({ policies: [WEB], computes: [done, coming] });
  const lastApplied = { minCu: 0.25, maxCu: 1, suspendTimeoutSeconds: 300 };
  stored.set(done.computeId, aRecord({ lastApplied, lastSentAtMs: EVENING - 16 * MINUTE_MS }));
  stored.set(coming.computeId, aRecord({ lastApplied: settingsOf(coming) }));
  await search(EVENING - 15 * MINUTE_MS);
  expect(messagesIn(queued)).toMatchObject([{ compute: coming.computeId, changes: { computes: 1, disconnecting: 1 } }]);
});

it('a change is not announced again for the end of its cooldown while its reading lags', async () => {
  const [done] = AWAKE.slice(0, 1) as [Compute];
  const { queued, put, search } = start({ policies: [WEB], computes: [done] });
  const sentMs = EVENING + 1000;
  const to = { minCu: 0.25, maxCu: 1 };
  const change = { before: { minCu: done.minCu, maxCu: done.maxCu }, to, answeredAtMs: sentMs };
  await search(sentMs);
  put(done, {
    lastApplied: { ...settingsOf(done), ...to },
    lastSentAtMs: sentMs,
    lastDisruption: { atMs: sentMs, policy: WEB.name },
    lastChanges: { size: change },
  } as Partial<ComputeRecord>);
  const before = queued.length;
  await search(sentMs + 5_000);
  await search(sentMs + 30_000);
  expect(messagesIn(queued.slice(before))).toEqual([]);
});

it('a change is announced in time though its compute is shown as it was before the last one', async () => {
  const [shown] = AWAKE.slice(0, 1) as [Compute];
  const { queued, put, search } = start({ policies: [WEB], computes: [shown] });
  const has = { minCu: 2, maxCu: 8 };
  const change = {
    before: { minCu: shown.minCu, maxCu: shown.maxCu },
    to: has,
    answeredAtMs: EVENING - 20 * MINUTE_MS,
  };
  await search(EVENING - 16 * MINUTE_MS);
  put(
    { ...shown, updatedAtMs: 0 },
    {
      lastApplied: { ...settingsOf(shown), ...has },
      lastChanges: { size: { ...change, updatedAtMs: 1 } },
      lagging: { size: true },
    },
  );
  await search(EVENING - 15 * MINUTE_MS);
  expect(messagesIn(queued)).toMatchObject([{ compute: shown.computeId, changes: { disconnecting: 1 } }]);
});

it('what is told late does not wait for more where it comes in seconds', async () => {
  const { queued, search } = start({ policies: [WEB], computes: AWAKE });
  await search(EVENING - 10_000);
  expect(messagesIn(queued)).toMatchObject([{ changes: { disconnecting: 16 } }]);
});

it.each(['the same leader', 'another leader'])(
  'restarts of a wait of two minutes that are found one by one are one message of %s, with half of the time left',
  async (who) => {
    const { queued, put, lead, search } = start({ policies: [WEB], computes: [] });
    let atMs = EVENING - 2 * MINUTE_MS;
    for (const compute of AWAKE.slice(0, 9)) {
      put(compute);
      await search(atMs);
      atMs += 5_000;
    }
    expect(queued).toEqual([]);
    if (who === 'another leader') lead();
    for (; atMs < EVENING; atMs += 5_000) await search(atMs);
    expect(messagesIn(queued)).toMatchObject([{ changes: { disconnecting: 9 } }]);
  },
);

/** A lowering of an active compute that waits until so many minutes after 19:00: an hour after its last restart. */
const SEVEN = EVENING + 60 * MINUTE_MS;
const WAITS = [
  aSchedule({ name: 'web-hours', owner: 'team-web', disruption: { ...disruption, cooldownMs: 60 * MINUTE_MS } }),
];
const waiting = (computeId: string, minutes: number) =>
  [
    aCompute({ computeId, branchId: `br-${computeId}`, minCu: 1, maxCu: 4 }),
    { lastDisruption: { atMs: EVENING + minutes * MINUTE_MS, lowered: true } },
  ] as const;

it('waits that end in the same quarter of an hour are one message, as early as the first was asked for', async () => {
  const { queued, put, search, store } = start({ policies: WAITS, computes: [] });
  await search(SEVEN - 30 * MINUTE_MS);
  put(...waiting('ep-3', 3));
  put(...waiting('ep-10', 10));
  put(...waiting('ep-16', 16));
  for (let minutes = -30; minutes <= 0; minutes += 1 / 2) await search(SEVEN + minutes * MINUTE_MS);
  expect(messagesIn(queued)).toMatchObject([
    {
      at: '2026-03-02T18:48:00Z',
      changes: { disconnecting: 2, from: '2026-03-02T19:03:00Z', to: '2026-03-02T19:10:00Z' },
    },
  ]);
  // Changed since the quarter began: the wait that was announced for 19:10 has yet to end, that for 19:03 is over.
  const since = { sinceMs: SEVEN + 5 * MINUTE_MS, nowMs: SEVEN + 10 * MINUTE_MS };
  expect(await announcementOf(store, { computeId: 'ep-10', ...since })).toMatchObject({ slotMs: SEVEN });
  expect(await announcementOf(store, { computeId: 'ep-3', ...since })).toBeUndefined();
});

it.each(['the same leader', 'another leader'])(
  '%s tells a wait that is found after the first of its quarter has ended',
  async (who) => {
    const { queued, put, lead, search } = start({ policies: WAITS, computes: [] });
    await search(SEVEN - 30 * MINUTE_MS);
    put(...waiting('ep-3', 3));
    put(...waiting('ep-12', 12));
    await search(SEVEN - 10 * MINUTE_MS);
    await search(SEVEN - 9 * MINUTE_MS);
    if (who === 'another leader') lead();
    await search(SEVEN + 4 * MINUTE_MS);
    put(...waiting('ep-10', 10));
    for (let minutes = 4; minutes < 12; minutes += 1 / 2) await search(SEVEN + minutes * MINUTE_MS);
    expect(messagesIn(queued)).toMatchObject([{ changes: { disconnecting: 2 } }, { compute: 'ep-10' }]);
  },
);

it('a second restart of a compute in the same quarter of an hour is told, too', async () => {
  const policy = aSchedule({ name: 'web-hours', disruption: { ...disruption, cooldownMs: 5 * MINUTE_MS } });
  const { queued, put, search, store } = start({ policies: [policy], computes: [] });
  const compute = aCompute({ computeId: 'ep-again', minCu: 1, maxCu: 4 });
  const restarted = (atMs: number) => put(compute, { lastDisruption: { atMs, policy: policy.name, lowered: true } });
  const searchUntil = async (fromMs: number, untilMs: number) => {
    for (let atMs = fromMs; atMs < untilMs; atMs += MINUTE_MS / 4) await search(atMs);
  };
  await search(SEVEN - 3 * MINUTE_MS);
  restarted(SEVEN - 2 * MINUTE_MS);
  await searchUntil(SEVEN - 2 * MINUTE_MS, SEVEN + 3 * MINUTE_MS);
  restarted(SEVEN + 3 * MINUTE_MS);
  await searchUntil(SEVEN + 3 * MINUTE_MS, SEVEN + 8 * MINUTE_MS);
  expect(messagesIn(queued)).toMatchObject([
    { compute: 'ep-again', changes: { from: '2026-03-02T19:03:00Z' } },
    { compute: 'ep-again', changes: { from: '2026-03-02T19:08:00Z' } },
  ]);
  const asked = { computeId: 'ep-again', sinceMs: SEVEN + 3 * MINUTE_MS, nowMs: SEVEN + 8 * MINUTE_MS };
  expect(await announcementOf(store, asked)).toMatchObject({ slotMs: SEVEN });
});

it('a leader takes nobody for told of whom another has not told, and tells nobody again', async () => {
  const [late, ...known] = EVENING_OF_WEB.toReversed().map((compute) => ({ ...compute, state: 'active' as const }));
  if (!late) throw new Error('no compute');
  const { queued, put, lead, search } = start({ policies: [WEB], computes: known });
  await search(EVENING - 15 * MINUTE_MS);
  lead();
  put(late);
  for (let minutes = 3; minutes > 0; minutes -= 1 / 4) await search(EVENING - minutes * MINUTE_MS);
  expect(messagesIn(queued)).toMatchObject([{ changes: { disconnecting: 85 } }, { compute: late.computeId }]);
});
