/** What the leader tells of the whole fleet: a staged set, a freeze, a key that is refused, a day that cost more than usual. */
import { describe, expect, it } from 'vitest';
import { type AnnounceDeps, startAnnouncements } from '../../src/app/announcements/announcements.ts';
import { type BoundaryReconciles, beginAtBoundary } from '../../src/app/fleet/at-boundary.ts';
import { SENT_DIGESTS } from '../../src/app/notifications/sent-digests.ts';
import { createPolicySets, type PartState } from '../../src/app/rollout/write-permission.ts';
import { openBudgets } from '../../src/app/usage/budget-store.ts';
import { keepSummary } from '../../src/app/usage/cost-summary.ts';
import type { Receiver } from '../../src/domain/notifications/notification.ts';
import type { Freeze } from '../../src/domain/overrides/freezes.ts';
import type { Hold } from '../../src/domain/overrides/holds.ts';
import { unloadedPart } from '../../src/domain/policy/team-parts.ts';
import type { BudgetState } from '../../src/domain/spend/state.ts';
import type { AccountStatus } from '../../src/ports/control-api.ts';
import type { CostsDocument } from '../../src/ports/cost-documents.ts';
import type { QueuedEntry } from '../../src/ports/outbox.ts';
import { aBudget, aCompute, at, currentRules } from '../support/builders.ts';
import { aSelector } from '../support/selectors.ts';
import { createSteppedClock } from '../support/simulated/clock.ts';
import { createMemoryStore } from '../support/simulated/store.ts';

const NOON = at('2026-03-04T12:00:00Z');
const DAY_MS = 86_400_000;

const receiver = (name: string, takes: Pick<Receiver, 'owners' | 'kinds'> = {}): Receiver => ({
  ...{ name, to: 'webhook', file: 'ebb.yaml', allowedOrigins: [], url: { from: 'text', text: 'http://127.0.0.1/' } },
  ...takes,
});

const RECEIVERS = [receiver('platform'), receiver('web', { owners: ['web'] })];

/** A leader whose rounds the test makes; `platform` takes all, `web` what concerns its computes. */
function aLeader(
  receivers: readonly Receiver[] = RECEIVERS,
  store = createMemoryStore(createSteppedClock(NOON, () => false)),
  fromMs = NOON,
) {
  let nowMs = fromMs;
  let round = async () => {};
  const rules = currentRules();
  const owners = [
    ['web-*', 'web'],
    ['api', 'api'],
  ] as const;
  rules.current = { ...rules.current, notify: { receivers }, costs: { ...rules.current.costs, owners } };
  const sets = createPolicySets({ stages: true, accepted: undefined });
  const is = {
    ...{ leader: true, freezes: [] as Freeze[], holds: [] as Hold[], accounts: [] as AccountStatus[] },
    ...{ outages: new Map<string, string>(), outageSinceMs: undefined as number | undefined, computes: FLEET },
  };
  const knownDigests: AnnounceDeps['knownDigests'] = { current: new Map() };
  const boundaryReconciles: BoundaryReconciles = new Map();
  startAnnouncements({
    ...{ rules, sets, store, knownDigests },
    clock: {
      now: () => nowMs,
      every: (_: number, search: () => Promise<void>) => {
        round = search;
        return { close: async () => {} };
      },
    },
    api: { accountStatus: () => is.accounts },
    outages: { current: () => is.outages, sinceMs: () => is.outageSinceMs },
    overrides: {
      get freezes() {
        return is.freezes;
      },
      get holds() {
        return is.holds;
      },
    },
    fleet: { evaluatedComputes: () => is.computes.map((compute) => ({ compute })), boundaryReconciles },
    leaderLease: { isHeld: () => is.leader },
    runInBackground: async (_task: string, work: () => Promise<void>) => work(),
  } as unknown as AnnounceDeps);
  return {
    ...{ is, sets, store, rules, knownDigests, boundaryReconciles },
    /** What waits for a receiver after another round. */
    async told(name = 'platform') {
      await round();
      const entries = await store.outbox({ receiver: name, state: 'waiting', limit: 100 });
      return entries.map(messageOf);
    },
    later: (ms: number) => {
      nowMs += ms;
    },
  };
}

/** A leader that has run for a day. */
async function aRunningLeader() {
  const leader = aLeader(undefined, undefined, NOON - DAY_MS);
  await leader.told();
  leader.later(DAY_MS);
  return leader;
}

const messageOf = ({ body }: QueuedEntry): Record<string, unknown> => JSON.parse(body);

/** A part that waits for a person. */
function staged(hash: string): PartState {
  const impact = { disconnected: 40, computes: 50, byPolicy: { days: 39, nights: 1 }, examples: ['ep-a', 'ep-b'] };
  return { candidate: { rules: { policies: { hash } }, impact }, problems: [] } as unknown as PartState;
}

const FLEET = [aCompute(), aCompute({ computeId: 'ep-api', projectId: 'p-api', projectName: 'api' })];

const FREEZE: Freeze = {
  ...{ id: 'f-1', owner: 'ann', reason: 'migration', select: 'all', allowRaise: true },
  ...{ createdAtMs: NOON - 60_000, expiresAtMs: NOON + DAY_MS },
};

const COSTS = (anomaly: CostsDocument['owners'][number]['anomaly']) =>
  ({ owners: [{ account: 'main', owner: 'web', anomaly }] }) as unknown as CostsDocument;

describe('receivers get once', () => {
  it('that a policy set waits for them, with the command that makes it current', async () => {
    const leader = aLeader();
    expect(await leader.told()).toEqual([]);
    Object.assign(leader.sets, staged('abcdef0123456789'));
    leader.sets.teams.set('web', staged('fedcba9876543210'));
    expect(await leader.told()).toMatchObject([
      {
        kind: 'staged',
        command: 'ebb approve abcdef0123456789',
        text: expect.stringMatching(
          /disconnect 40 of 50.*\(days restarts 39, nights restarts 1; such as ep-a, ep-b\)$/,
        ),
      },
      { kind: 'staged', owner: 'web', command: 'ebb approve fedcba9876543210' },
    ]);
    leader.later(DAY_MS);
    expect(await leader.told()).toHaveLength(2);
    // A team hears of its own files only.
    expect(await leader.told('web')).toMatchObject([{ owner: 'web' }]);
  });

  it('that policy files can not be loaded for a minute, of whom, where and what stays; and when they can again', async () => {
    const leader = aLeader([...RECEIVERS, receiver('api', { owners: ['api'] })]);
    const web: PartState = { candidate: undefined, problems: [] };
    leader.sets.teams.set('web', web);
    leader.rules.current = { ...leader.rules.current, teams: [{ name: 'web', projects: ['web-*'] }] };
    await leader.told();
    web.problems = ['policies/web/office.yaml:4:25: size "9" is unknown', 'policies/web/office.yaml:6:1: x'];
    expect(await leader.told()).toEqual([]);
    leader.later(59_000);
    // Half-saved files are no news.
    web.problems = ['policies/web/office.yaml:9:1: "otherwise" is missing', 'policies/web/office.yaml:12:1: x'];
    expect(await leader.told()).toEqual([]);
    leader.later(1_000);
    const broken = {
      ...{ kind: 'policies_refused', owner: 'web', at: '2026-03-04T12:01:00Z', command: 'ebb validate' },
      text: `policy files of web can't be loaded, so the current policies of web stay in effect: policies/web/office.yaml:9:1: "otherwise" is missing (and 1 more)`,
    };
    expect(await leader.told()).toMatchObject([broken]);
    leader.later(DAY_MS);
    expect(await leader.told('web')).toMatchObject([broken]);
    web.problems = [];
    expect(await leader.told()).toHaveLength(1);
    leader.later(60_000);
    const again = { kind: 'policies_refused', owner: 'web', text: 'policy files of web can be loaded again' };
    expect(await leader.told()).toMatchObject([broken, again]);
    leader.later(DAY_MS);
    expect(await leader.told('web')).toMatchObject([broken, again]);
    expect(await leader.told('api')).toEqual([]);
  });

  it('that policy files can not be loaded, though another daemon leads, which finds it later', async () => {
    const leader = aLeader();
    const broken = { problems: ['policies/a.yaml:1:1: x'] };
    Object.assign(leader.sets, broken);
    await leader.told();
    leader.later(60_000);
    const once = [{ kind: 'policies_refused', owner: null, text: expect.stringContaining(': policies/a.yaml:1:1: x') }];
    expect(await leader.told()).toMatchObject(once);
    const next = aLeader(RECEIVERS, leader.store);
    Object.assign(next.sets, broken);
    await next.told();
    next.later(120_000);
    expect(await next.told()).toMatchObject(once);
    // A team hears of its own files only.
    expect(await next.told('web')).toEqual([]);
  });

  it('that nothing is written any more for a team whose files are still broken after a restart of all daemons', async () => {
    const broken: PartState = { candidate: undefined, problems: ['policies/web/a.yaml:1:1: x'] };
    const team = { name: 'web', projects: ['web-*'] };
    const leader = aLeader();
    const textsAfterAMinute = async (daemon: typeof leader) => {
      daemon.sets.teams.set('web', broken);
      await daemon.told();
      daemon.later(60_000);
      return (await daemon.told()).map(({ text }) => text);
    };
    leader.rules.current = { ...leader.rules.current, teams: [team] };
    const stays = expect.stringContaining('so the current policies of web stay in effect');
    expect(await textsAfterAMinute(leader)).toEqual([stays]);
    const restarted = () => {
      const next = aLeader(RECEIVERS, leader.store, NOON + DAY_MS);
      const { policies } = next.rules.current;
      const set = { ...policies.set, policies: unloadedPart(team).policies };
      next.rules.current = { ...next.rules.current, teams: [team], policies: { ...policies, set } };
      return next;
    };
    // Another daemon still has the policies.
    const follower = restarted();
    follower.sets.newer = { number: 2, setHash: 'newer' };
    expect(await textsAfterAMinute(follower)).toEqual([stays]);
    const left = expect.stringContaining('so nothing is written to computes of web: policies/web/a.yaml:1:1: x');
    expect(await textsAfterAMinute(restarted())).toEqual([stays, left]);
    expect(await textsAfterAMinute(restarted())).toEqual([stays, left]);
  });

  it('that the control API was not available for five minutes, and that it is again, though another daemon leads by then', async () => {
    const leader = await aRunningLeader();
    leader.is.outages = new Map([['control API', 'GET /projects: 503: unavailable']]);
    expect(await leader.told()).toEqual([]);
    leader.later(299_000);
    expect(await leader.told()).toEqual([]);
    leader.later(1_000);
    const away = {
      ...{ kind: 'outage', owner: null, at: '2026-03-04T12:05:00Z', command: 'ebb status' },
      text: 'control API has not been available since 2026-03-04T12:00:00Z: GET /projects: 503: unavailable',
    };
    expect(await leader.told()).toMatchObject([away]);
    const next = aLeader(RECEIVERS, leader.store);
    next.later(300_000);
    await next.told();
    next.later(299_000);
    expect(await next.told()).toMatchObject([away]);
    next.later(1_000);
    // That one has not seen the end.
    const back = { kind: 'outage', text: 'control API is available again; it was not since 2026-03-04T12:00:00Z' };
    expect(await next.told()).toMatchObject([away, back]);
    next.later(60_000);
    expect(await next.told()).toHaveLength(2);
  });

  it('that it was not available for five minutes since the first request that failed, however long that was tried', async () => {
    const leader = await aRunningLeader();
    leader.is.outages = new Map([['control API', '503']]);
    leader.is.outageSinceMs = NOON - 30_000;
    expect(await leader.told()).toEqual([]);
    leader.later(269_000);
    expect(await leader.told()).toEqual([]);
    leader.later(1_000);
    expect(await leader.told()).toMatchObject([
      { text: 'control API has not been available since 2026-03-04T11:59:30Z: 503' },
    ]);
    leader.is.outages = new Map();
    leader.is.outageSinceMs = NOON + 268_000;
    await leader.told();
    leader.later(298_000);
    const over = 'control API is available again since 2026-03-04T12:04:28Z; it was not since 2026-03-04T11:59:30Z';
    expect(await leader.told()).toMatchObject([{}, { text: over }]);
  });

  it('that it was available for some minutes in between, which are too few to be told', async () => {
    const leader = await aRunningLeader();
    const turnsAt = async (minutes: number, isAway: boolean) => {
      leader.later(minutes * 60_000);
      leader.is.outages = new Map(isAway ? [['control API', '503']] : []);
      leader.is.outageSinceMs = NOON + passed(minutes) * 60_000;
      return leader.told();
    };
    let atMinute = 0;
    const passed = (minutes: number) => {
      atMinute += minutes;
      return atMinute;
    };
    await turnsAt(0, true);
    leader.later(6 * 60_000);
    passed(6);
    expect(await leader.told()).toHaveLength(1);
    await turnsAt(0, false);
    await turnsAt(3, true);
    expect(await turnsAt(2, false)).toHaveLength(1);
    leader.later(5 * 60_000);
    const text =
      'control API is available again since 2026-03-04T12:11:00Z; it was not since 2026-03-04T12:00:00Z, except for some minutes';
    expect(await leader.told()).toMatchObject([{}, { text }]);
  });

  it('no break that was before it, though another daemon has noticed it later than the leader', async () => {
    const leader = await aRunningLeader();
    const next = aLeader(RECEIVERS, leader.store);
    next.is.leader = false;
    const turns = async (daemon: typeof leader, second: number, isAway: boolean) => {
      daemon.is.outages = new Map(isAway ? [['control API', '503']] : []);
      daemon.is.outageSinceMs = NOON + second * 1_000;
      return daemon.told();
    };
    await turns(next, 0, true);
    next.later(60_000);
    await turns(next, 60, false);
    leader.later(300_000);
    await turns(leader, 300, true);
    leader.later(300_000);
    expect(await leader.told()).toHaveLength(1);
    next.later(560_000);
    await turns(next, 620, true);
    next.is.leader = true;
    next.later(60_000);
    await turns(next, 680, false);
    next.later(300_000);
    const text = 'control API is available again since 2026-03-04T12:11:20Z; it was not since 2026-03-04T12:05:00Z';
    expect(await next.told()).toMatchObject([{}, { text }]);
  });

  it('since when it is available again of a daemon that has seen it, though it did not lead then', async () => {
    const leader = await aRunningLeader();
    const next = aLeader(RECEIVERS, leader.store);
    next.is.leader = false;
    for (const daemon of [leader, next]) {
      daemon.is.outages = new Map([['control API', '503']]);
      await daemon.told();
      daemon.later(300_000);
      await daemon.told();
    }
    next.is.outages = new Map();
    next.later(60_000);
    await next.told();
    next.is.leader = true;
    next.later(300_000);
    const since = '2026-03-04T12:06:00Z; it was not since 2026-03-04T12:00:00Z';
    expect(await next.told()).toMatchObject([{}, { text: `control API is available again since ${since}` }]);
  });

  it.each(['the leader', 'a daemon that did not lead'])(
    'that the control API is available again, though the store has lost its data since and only %s knows',
    async (who) => {
      const leader = await aRunningLeader();
      const next = aLeader(RECEIVERS, leader.store);
      next.is.leader = false;
      const [own] = who === 'the leader' ? [leader] : [next];
      for (const daemon of [leader, next]) {
        daemon.is.outages = new Map([['control API', '503']]);
        await daemon.told();
        daemon.later(300_000);
        await daemon.told();
        daemon.later(60_000);
        await daemon.told();
        daemon.is.outages = new Map();
        await daemon.told();
      }
      await leader.store.deleteDocuments('outages', ['all']);
      // Another one leads for a while, which knows nothing.
      const other = aLeader(RECEIVERS, leader.store);
      await other.told();
      own.later(60_000);
      await own.told();
      own.is.leader = true;
      own.later(240_000);
      const over = 'control API is available again since 2026-03-04T12:06:00Z; it was not since 2026-03-04T12:00:00Z';
      expect((await own.told()).at(-1)).toMatchObject({ kind: 'outage', text: over });
    },
  );

  it('since when at least it is not available, where the daemon has just started', async () => {
    const leader = aLeader();
    leader.is.outages = new Map([['control API', '503']]);
    await leader.told();
    leader.later(300_000);
    const since = 'since at least 2026-03-04T12:00:00Z';
    expect(await leader.told()).toMatchObject([{ text: `control API has not been available ${since}: 503` }]);
    leader.is.outages = new Map();
    await leader.told();
    leader.later(300_000);
    const over = 'control API is available again since 2026-03-04T12:05:00Z';
    expect(await leader.told()).toMatchObject([{}, { text: `${over}; it was not ${since}` }]);
  });

  it('of no outage that was over within minutes', async () => {
    const leader = aLeader();
    leader.is.outages = new Map([['control API', 'GET /projects: 503: unavailable']]);
    await leader.told();
    leader.later(240_000);
    leader.is.outages = new Map();
    await leader.told();
    leader.later(600_000);
    expect(await leader.told()).toEqual([]);
  });

  it('that somebody has frozen computes, why, until when, and how it ends', async () => {
    const leader = aLeader();
    leader.is.freezes = [
      FREEZE,
      { ...FREEZE, id: 'f-2', select: aSelector({ projects: ['web-*'] }) as Freeze['select'] },
    ];
    expect(await leader.told()).toMatchObject([
      {
        ...{ kind: 'freeze', at: '2026-03-04T11:59:00Z', command: 'ebb unfreeze f-1' },
        text: 'ann has frozen all computes, raises allowed (2 computes: api 1, web 1) until 2026-03-05T12:00:00Z: migration',
      },
      {
        command: 'ebb unfreeze f-2',
        text: expect.stringContaining('ann has frozen projects=web-*, raises allowed (1 compute) until'),
      },
    ]);
    leader.later(60_000);
    expect(await leader.told()).toHaveLength(2);
  });

  it('at once, though changes at a boundary are being made, that somebody has frozen computes', async () => {
    const leader = aLeader();
    beginAtBoundary(leader, NOON - 20_000, 'main');
    leader.is.freezes = [FREEZE];
    expect(await leader.told()).toMatchObject([{ kind: 'freeze', command: 'ebb unfreeze f-1' }]);
  });

  it('of a team, too, that somebody has frozen computes of it', async () => {
    const leader = aLeader([receiver('web', { owners: ['web'] }), receiver('api', { owners: ['api'] })]);
    leader.is.freezes = [{ ...FREEZE, select: aSelector({ projects: ['web-*'] }) as Freeze['select'] }];
    expect(await leader.told('web')).toMatchObject([{ kind: 'freeze', owner: null, command: 'ebb unfreeze f-1' }]);
    expect(await leader.told('api')).toEqual([]);
  });

  it('of a team that somebody else holds a compute of it, if that is news', async () => {
    const receivers = [
      receiver('web', { owners: ['web'] }),
      receiver('api', { owners: ['api'] }),
      receiver('platform'),
    ];
    const leader = aLeader([...receivers, receiver('holds', { kinds: ['hold'] })]);
    const { computeId, projectId } = FLEET[0] ?? aCompute();
    const hold: Hold = {
      ...{ id: 'h-1', projectId, computeId, owner: 'ann', reason: 'load test', size: { minCu: 4, maxCu: 8 } },
      ...{ createdAtMs: NOON - 60_000, expiresAtMs: NOON + DAY_MS },
    };
    leader.is.holds = [
      hold,
      { ...hold, id: 'h-own', teams: ['web'] },
      { ...hold, id: 'h-old', createdAtMs: NOON - DAY_MS },
    ];
    const once = [
      {
        ...{ kind: 'hold', owner: 'web', at: '2026-03-04T11:59:00Z', command: `ebb release ${computeId}` },
        text: `ann holds ${computeId} (size 4-8 CU) until 2026-03-05T12:00:00Z: load test`,
      },
    ];
    expect(await leader.told('web')).toMatchObject(once);
    leader.later(60_000);
    expect(await leader.told('web')).toMatchObject(once);
    expect(await leader.told('holds')).toMatchObject(once);
    expect([await leader.told('api'), await leader.told('platform')]).toEqual([[], []]);
  });

  it('a day that the key of an account is refused, and that it works again, though another daemon leads by then', async () => {
    const leader = await aRunningLeader();
    const refused: AccountStatus = { account: 'shop', key: 'refused', message: 'shop: 401, the key is not valid' };
    leader.is.accounts = [{ account: 'main', key: 'valid' }, refused];
    const once = [{ kind: 'key_refused', text: 'shop: 401, the key is not valid' }];
    expect(await leader.told()).toMatchObject(once);
    leader.later(60_000);
    expect(await leader.told()).toMatchObject(once);
    leader.later(DAY_MS);
    const twice = [...once, ...once];
    expect(await leader.told()).toMatchObject(twice);
    const next = aLeader(RECEIVERS, leader.store, NOON + DAY_MS + 180_000);
    // Of a daemon that has just started, and of a key that can't be read, it is not known.
    for (const key of ['unknown', 'missing', 'unknown'] as const) {
      next.is.accounts = [{ account: 'shop', key }];
      await next.told();
      next.later(120_000);
      expect(await next.told()).toMatchObject(twice);
    }
    next.is.accounts = [{ account: 'shop', key: 'valid' }];
    await next.told();
    next.later(60_000);
    const text = 'the API key of account shop works again; it had failed since 2026-03-04T12:00:00Z';
    expect(await next.told()).toMatchObject([...twice, { kind: 'key_refused', text }]);
    next.later(DAY_MS);
    expect(await next.told()).toHaveLength(3);
  });

  it('since when a key works again, where that was seen, and nothing of accounts that are no longer there', async () => {
    const leader = await aRunningLeader();
    const refused = (account: string): AccountStatus => ({ account, key: 'refused', message: `${account}: 401` });
    leader.is.accounts = [refused('shop'), refused('gone')];
    expect(await leader.told()).toHaveLength(2);
    leader.later(60_000);
    leader.is.accounts = [{ account: 'shop', key: 'valid' }];
    // Answers that change within a minute are no end, and no second beginning.
    expect(await leader.told()).toHaveLength(2);
    leader.is.accounts = [refused('shop')];
    expect(await leader.told()).toHaveLength(2);
    leader.is.accounts = [{ account: 'shop', key: 'valid' }];
    await leader.told();
    leader.later(60_000);
    const text =
      'the API key of account shop works again since 2026-03-04T12:01:00Z; it had failed since 2026-03-04T12:00:00Z';
    expect((await leader.told()).slice(2)).toMatchObject([{ text }]);
  });

  it('that an account can not be used, if they own computes in it: an outage, and a key that is refused or missing', async () => {
    const receivers = [receiver('web', { owners: ['web'] }), receiver('api', { owners: ['api'] })];
    const quiet = receiver('quiet', { owners: ['web'], kinds: ['change_coming'] });
    const leader = aLeader([...receivers, quiet], undefined, NOON - DAY_MS);
    leader.is.computes = FLEET.map((compute) =>
      compute.projectId === 'p-api' ? { ...compute, account: 'shop' } : compute,
    );
    const textsOf = async (name: string) => (await leader.told(name)).map(({ text }) => text);
    const all = async () => [await textsOf('web'), await textsOf('api'), await textsOf('quiet')];
    await leader.told();
    leader.later(DAY_MS);

    leader.is.outages = new Map([
      ['control API', '503'],
      ['project list of shop', '503'],
    ]);
    await leader.told();
    leader.later(299_000);
    expect(await all()).toEqual([[], [], []]);
    leader.later(1_000);
    const away = 'control API has not been available since 2026-03-04T12:00:00Z: 503';
    expect(await all()).toEqual([[away], [away], []]);
    leader.is.outages = new Map();
    await leader.told();
    leader.later(300_000);
    const back = 'control API is available again since 2026-03-04T12:05:00Z; it was not since 2026-03-04T12:00:00Z';
    expect(await all()).toEqual([[away, back], [away, back], []]);

    leader.is.outages = new Map([['control API for default', '502']]);
    const message = 'account shop has no API key to send: it is empty; put it there';
    leader.is.accounts = [{ account: 'shop', key: 'missing', message, keyTrouble: { state: 'missing' } }];
    await leader.told();
    // A file that is being replaced is no news.
    leader.later(59_000);
    expect((await all()).flat()).toHaveLength(4);
    leader.later(1_000);
    expect((await textsOf('api')).slice(2)).toEqual([message]);
    leader.is.accounts = [{ account: 'shop', key: 'valid', keyTrouble: { state: 'missing', endedAgoMs: 1 } }];
    await leader.told();
    leader.later(240_000);
    const works = expect.stringContaining('the API key of account shop works again since');
    expect((await textsOf('api')).slice(2)).toEqual([message, works]);
    expect((await textsOf('web')).slice(2)).toEqual([expect.stringContaining('control API for default has not been')]);
  });

  it('that a key is refused, though nothing was read under it since the start, and of keys of single projects nothing', async () => {
    const leader = aLeader(RECEIVERS, undefined, NOON);
    const refused = (account: string) => ({ account, key: 'refused', message: `${account}: 401` }) as const;
    leader.is.accounts = [{ ...refused('shop'), keyTrouble: { state: 'refused' } }, refused('single-keys')];
    expect(await leader.told()).toHaveLength(2);
    expect(await leader.told('web')).toMatchObject([{ kind: 'key_refused', text: 'shop: 401' }]);
  });

  it('that yesterday cost more than usual, whose computes they were, and the owner too', async () => {
    const leader = aLeader();
    await keepSummary(leader.store, COSTS(null));
    expect(await leader.told()).toEqual([]);
    await keepSummary(leader.store, COSTS({ day: '2026-03-03', cu_hours: 90.5, ordinary_cu_hours: 31 }));
    const spent = [
      {
        ...{ kind: 'spend_anomaly', owner: 'web', command: 'ebb cost' },
        text: 'web used 90.5 CU-hours on 2026-03-03 in the account main; up to 31 are usual for that weekday',
      },
    ];
    expect(await leader.told()).toMatchObject(spent);
    leader.later(3_600_000);
    expect(await leader.told('web')).toMatchObject(spent);
    await keepSummary(leader.store, COSTS({ day: '2026-03-04', cu_hours: 80, ordinary_cu_hours: 31 }));
    expect(await leader.told()).toHaveLength(2);
  });
});

const BUDGET_STATE: BudgetState = {
  ...{ policy: 'dev-budget', account: 'main', month: { unit: 'usd', amount: 400 } },
  ...{ fromMs: at('2026-03-01T00:00:00Z'), toMs: at('2026-04-01T00:00:00Z'), knownUntilMs: NOON },
  ...{ spent: 410, projected: null, unknownHours: 0, decidedAtMs: 0, spans: [], released: [] },
  notified: [{ at: 1, of: 'spent' }],
};

it.each(['the leader', 'a daemon that did not lead'])(
  'after the store has lost its data, nothing is told again, not by later daemons either, if %s has known it',
  async (who) => {
    const leader = aLeader();
    const { store } = leader;
    const daemonsOfGroup = (...daemons: (typeof leader)[]) => {
      for (const { is, rules } of daemons) {
        is.freezes = [FREEZE];
        const { policies } = currentRules(aBudget({ name: 'dev-budget' })).current;
        rules.current = { ...rules.current, policies, teams: [{ name: 'web', projects: ['web-*'] }] };
      }
      return daemons;
    };
    const follower = aLeader(RECEIVERS, store);
    follower.is.leader = false;
    const daemons = daemonsOfGroup(leader, follower);
    const decideBudgets = async () => void (await (await openBudgets(store)).replace([BUDGET_STATE]));
    await decideBudgets();
    for (const problems of [[], ['policies/web/a.yaml:1:1: x'], []]) {
      for (const { told, later, sets } of daemons) {
        sets.teams.set('web', { candidate: undefined, problems });
        await told();
        later(60_000);
        await told();
      }
    }
    const { length } = await leader.told();
    expect(length).toBe(4);
    const again = expect.objectContaining({ text: 'policy files of web can be loaded again' });
    expect(await leader.told()).toContainEqual(again);

    Object.assign(store, createMemoryStore(createSteppedClock(NOON, () => false)));
    await decideBudgets();
    const [own] = who === 'the leader' ? [leader] : [follower];
    own.is.leader = true;
    expect(await own.told()).toEqual([]);
    for (const next of [aLeader(RECEIVERS, store, NOON + 240_000), aLeader(RECEIVERS, store, NOON + 300_000)]) {
      daemonsOfGroup(next);
      expect(await next.told()).toEqual([]);
    }
  },
);

it('who does not lead tells nothing, and without receivers nothing is queued', async () => {
  const follower = aLeader();
  follower.is.leader = false;
  follower.is.freezes = [FREEZE];
  expect(await follower.told()).toEqual([]);
  follower.is.leader = true;
  expect(await follower.told()).toHaveLength(1);
  const alone = aLeader([]);
  alone.is.freezes = [FREEZE];
  expect(await alone.told()).toEqual([]);
});

it('a daemon that does not lead knows within a minute what was announced, and keeps what a store loses', async () => {
  const other = aLeader();
  other.is.leader = false;
  const digest = { computeIds: ['ep-a'], untilMs: NOON + DAY_MS };
  await SENT_DIGESTS.put(other.store, 'coming', digest);
  await other.told();
  const known = new Map([['coming', digest]]);
  expect(other.knownDigests.current).toEqual(known);
  await SENT_DIGESTS.delete(other.store, ['coming']);
  other.later(60_000);
  await other.told();
  expect(other.knownDigests.current).toEqual(known);
  other.later(DAY_MS);
  await other.told();
  expect(other.knownDigests.current).toEqual(new Map());
});
