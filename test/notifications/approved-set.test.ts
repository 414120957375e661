import { expect, it, onTestFinished } from 'vitest';
import { rulesOf } from '../../src/compose/rules-from-files.ts';
import type { MessageDocument, Receiver } from '../../src/domain/notifications/notification.ts';
import type { Policy } from '../../src/domain/policy/policy.ts';
import { policySet } from '../../src/domain/policy/policy-set.ts';
import { teamPart } from '../../src/domain/policy/team-parts.ts';
import type { Settings } from '../../src/settings/settings.ts';
import { at } from '../support/builders.ts';
import { aSelector } from '../support/selectors.ts';
import { startSimulatedDaemon } from '../support/simulated/daemon.ts';
import { givenReadings } from '../support/simulated/given-readings.ts';

const MINUTE_MS = 60_000;
const MORNING = at('2026-03-02T09:00:00Z');
const TEAMS = ['a', 'b'];
/** Enough of each team that its part is staged. */
const AWAKE_EACH = 7;
const AWAKE = TEAMS.flatMap((team) => Array.from({ length: AWAKE_EACH }, (_, index) => `${team}${index}`));
const COMPUTE = { minCu: 1, maxCu: 1, suspendTimeoutSeconds: -1 } as const;
const receiver = (name: string, owner: string): Receiver => ({
  ...{ name, to: 'webhook', file: 'ebb.yaml', allowedOrigins: [], owners: [owner] },
  url: { from: 'text', text: 'http://127.0.0.1/' },
});
const POLICIES = `version: 1
policies:
  - name: always
    kind: schedule
    select: { computes: ["ep-*"] }
    windows: [{ at: always, size: 1-1 }]
    otherwise: leave
    disruption: { raise: { when: any }, lower: { when: any }, newly_discovered: act }
`;

/** A daemon that has staged a set with larger computes, or one for each team; one more of the first team is asleep. */
async function withStagedSet({ hasTeams = false, policies: text = POLICIES } = {}) {
  const told: { atMs: number; receiver: string; message: MessageDocument }[] = [];
  const read: { settings?: Settings } = {};
  const { source, give } = givenReadings();
  const daemon = await startSimulatedDaemon({
    fromMs: MORNING,
    computes: Object.fromEntries([
      ...AWAKE.map((name) => [name, { ...COMPUTE, state: 'active' }]),
      ['asleep', { ...COMPUTE, state: 'idle' }],
    ]),
    policies: text,
    source,
    sender: {
      async send({ name }, { body }) {
        told.push({ atMs: daemon.clock.now(), receiver: name, message: JSON.parse(body) });
        return { ok: true };
      },
      close: async () => {},
    },
    rhythm: {
      ...{ inventoryMs: MINUTE_MS, resyncMs: MINUTE_MS, waitingMs: MINUTE_MS, rulesMs: 2_000 },
      shortestRoundMs: 1_000,
    },
    settings(settings) {
      read.settings = {
        ...settings,
        staging: 'always',
        teams: hasTeams ? TEAMS.map((team) => ({ name: `team-${team}`, policies: [], projects: [`${team}*`] })) : [],
        owners: TEAMS.map((team) => [`${team}*`, `team-${team}`]),
        notify: { receivers: TEAMS.map((team) => receiver(`chat-${team}`, `team-${team}`)) },
      };
      return read.settings;
    },
  });
  onTestFinished(() => daemon.close());
  const { clock, operator, rules } = daemon;
  await clock.runTo(MORNING + 5 * MINUTE_MS);
  const { policies } = rules.current.policies.set;
  const withLarger = (policy: Policy) =>
    ({ ...policy, windows: [{ at: [{ kind: 'always' }], size: { minCu: 2, maxCu: 2 } }] }) as Policy;
  const larger = policies.map((policy) => (policy.name === 'always' ? withLarger(policy) : policy));
  const ofTeams = TEAMS.flatMap((team) =>
    larger.map((policy) => ({
      ...{ ...policy, priority: 1, name: `team-${team}/size`, team: `team-${team}`, owner: `team-${team}` },
      select: aSelector({ projects: [`${team}*`] }),
    })),
  );
  const set = policySet(hasTeams ? [...policies, ...ofTeams] : larger, new Map());
  if (!read.settings) throw new Error('no settings');
  give({ ok: true, rules: rulesOf(read.settings, set), warnings: [], needRestart: [] });
  await clock.runTo(MORNING + 10 * MINUTE_MS);
  const approve = (hash = set.hash, owner = 'ann') => operator.approve({ hash, owner });
  return { ...daemon, told, approve, set };
}

it('of what an approved set restarts each team gets one message before, which names its computes, and none for each of them', async () => {
  const { told, approve, clock, events } = await withStagedSet();
  expect(await approve()).toMatchObject({ ok: true });
  // Somebody else approves it, too, before it is current: that delays nothing, and nothing is told twice.
  await clock.runTo(clock.now() + 3_000);
  expect(await approve()).toMatchObject({ ok: true });
  await clock.runTo(MORNING + 20 * MINUTE_MS);
  const restarts = events.filter(({ event }) => event.kind === 'write_ended' && event.action.disconnects);
  expect(restarts).toHaveLength(AWAKE.length);
  const firstMs = Math.min(...restarts.map(({ atMs }) => atMs));
  expect(told).toHaveLength(TEAMS.length);
  for (const team of TEAMS) {
    const [one] = told.filter((each) => each.receiver === `chat-${team}`);
    expect(one?.atMs).toBeLessThan(firstMs);
    expect(one?.message).toMatchObject({ kind: 'change_coming', owner: `team-${team}` });
    expect(one?.message.text).toMatch(/, as policy set [0-9a-f]{12} becomes current, approved by ann: 7 computes of/);
    const named = one?.message.changes?.list.map(({ compute }) => compute.replace('ep-', ''));
    expect(named?.toSorted()).toEqual(AWAKE.filter((name) => name.startsWith(team)));
  }
});

it('what restarts anyway, by a window of the present set, is not announced as the work of who approves another', async () => {
  // The window opens for the second team before the approved set is current.
  const window = `  - name: opens
    kind: schedule
    priority: 1
    select: { computes: ["ep-b*"] }
    windows: [{ at: Mon 09:12-10:00, size: 2-2 }]
    otherwise: { size: 1-1 }
    disruption: { raise: { when: any }, newly_discovered: act }
`;
  const { told, approve, clock, events } = await withStagedSet({
    policies: POLICIES.replace('version: 1', 'version: 1\ntimezone: UTC') + window,
  });
  await clock.runTo(MORNING + 11 * MINUTE_MS + 58_000);
  expect(await approve()).toMatchObject({ ok: true });
  await clock.runTo(MORNING + 20 * MINUTE_MS);
  const restarts = events.filter(({ event }) => event.kind === 'write_ended' && event.action.disconnects);
  expect(restarts).toHaveLength(AWAKE.length);
  const announced = told.filter(({ message }) => message.text.includes('becomes current, approved by ann'));
  expect(announced.map(({ receiver: name }) => name)).toEqual(['chat-a']);
});

it('of sets that are approved seconds apart, each team gets its own message, and all who approved are named', async () => {
  const { told, approve, clock, events, set } = await withStagedSet({ hasTeams: true });
  told.length = 0;
  for (const team of TEAMS) {
    const { hash } = teamPart(set, `team-${team}`);
    expect(await approve(hash, `lead-${team}`)).toMatchObject({ ok: true });
    await clock.runTo(clock.now() + 3_000);
  }
  await clock.runTo(MORNING + 20 * MINUTE_MS);
  const restarts = events.filter(({ event }) => event.kind === 'write_ended' && event.action.disconnects);
  expect(restarts).toHaveLength(AWAKE.length);
  expect(told.map(({ receiver: name, message }) => [name, message.kind]).toSorted()).toEqual([
    ['chat-a', 'change_coming'],
    ['chat-b', 'change_coming'],
  ]);
  const firstMs = Math.min(...restarts.map(({ atMs }) => atMs));
  for (const { atMs } of told) expect(atMs).toBeLessThan(firstMs);
  const [first, second] = told.toSorted((a, b) => a.atMs - b.atMs);
  expect(first?.message.text).toContain('approved by lead-a:');
  expect(second?.message.text).toContain('approved by lead-a, lead-b:');
});
