import { Writable } from 'node:stream';
import { expect, it, onTestFinished } from 'vitest';
import { rulesOf } from '../../src/compose/rules-from-files.ts';
import type { Policy, PolicySet } from '../../src/domain/policy/policy.ts';
import { policySet } from '../../src/domain/policy/policy-set.ts';
import { teamPart } from '../../src/domain/policy/team-parts.ts';
import type { Settings } from '../../src/settings/settings.ts';
import { at } from '../support/builders.ts';
import { startSimulatedDaemon } from '../support/simulated/daemon.ts';
import { givenReadings } from '../support/simulated/given-readings.ts';

const MINUTE_MS = 60_000;
const WEB = { name: 'web', policies: [], projects: ['*'] };
const START = at('2026-03-02T08:30:00Z');
const NINE = at('2026-03-02T09:00:00Z');
const END = at('2026-03-02T10:30:00Z');
/** More than may be restarted without an approval. */
const COMPUTES = Array.from({ length: 7 }, (_, index) => `c${index}`);
/** The limits agree with all sizes, the hours change all of them at 09:00 and at 10:30. */
const POLICIES = `version: 1
policies:
  - { name: ceiling, kind: limits, select: { computes: ["ep-*"] }, size: { max: 4 } }
  - name: hours
    kind: schedule
    select: { projects: ["*"] }
    windows: [{ at: Mon-Fri 09:00-10:30 UTC, size: 1-1 }]
    otherwise: { size: 0.25-0.25 }
    disruption: { raise: { when: any }, lower: { when: any }, at_once: 100% }
`;

const withOnly = ({ policies }: PolicySet, isKept: (policy: Policy) => boolean) =>
  policySet(policies.filter(isKept), new Map());

const ofTeam = ({ policies }: PolicySet) => {
  const owned = (policy: Policy): Policy => ({ ...policy, name: `web/${policy.name}`, team: 'web', owner: 'web' });
  return policySet(
    policies.map((policy) => (policy.kind === 'limits' ? policy : owned(policy))),
    new Map(),
  );
};

/** A daemon that starts at 08:30 with awake computes of 2 CU. */
async function startedEarly(setOf: (all: PolicySet) => PolicySet, changed: Partial<Settings> = {}) {
  const lines: string[] = [];
  const read: { settings?: Settings; all?: PolicySet } = {};
  const { source, give } = givenReadings();
  const daemon = await startSimulatedDaemon({
    fromMs: START,
    log: new Writable({ write: (chunk, _encoding, done) => done(void lines.push(String(chunk))) }),
    computes: Object.fromEntries(
      COMPUTES.map((name) => [name, { state: 'active', minCu: 2, maxCu: 2, suspendTimeoutSeconds: -1 }]),
    ),
    policies: POLICIES,
    withSet(all) {
      read.all = all;
      return setOf(all);
    },
    settings(settings) {
      read.settings = { ...settings, ...changed };
      return read.settings;
    },
    source,
    rhythm: {
      ...{ inventoryMs: MINUTE_MS, resyncMs: MINUTE_MS, waitingMs: MINUTE_MS, rulesMs: 2_000 },
      shortestRoundMs: 1_000,
    },
  });
  onTestFinished(() => daemon.close());
  const { settings, all } = read;
  if (!settings || !all) throw new Error('it has read nothing');
  const giveSet = (set: PolicySet) => give({ ok: true, rules: rulesOf(settings, set), warnings: [], needRestart: [] });
  const restarts = () =>
    daemon.events.filter(({ event }) => event.kind === 'write_ended' && event.action.disconnects).length;
  return { ...daemon, set: setOf(all), all, give: giveSet, restarts, logged: () => lines.join('') };
}

it('computes whose size a ceiling agrees with keep their clients as policies that change it come minutes later', async () => {
  const { clock, all, give, restarts, record } = await startedEarly((set) =>
    withOnly(set, ({ kind }) => kind === 'limits'),
  );
  await clock.runTo(START + 5 * MINUTE_MS);
  expect((await record('c0', 'ep-c0'))?.lastApplied).toMatchObject({ maxCu: 2 });
  give(all);
  await clock.runTo(NINE - MINUTE_MS);
  expect(restarts()).toBe(0);
  await clock.runTo(NINE + 10 * MINUTE_MS);
  expect(restarts()).toBe(COMPUTES.length);
});

it.each<[string, (all: PolicySet) => PolicySet, Partial<Settings>]>([
  ['the first policies', (all) => all, {}],
  ["a team's first policies", ofTeam, { teams: [WEB] }],
])(
  '%s, approved after a boundary, restart nothing before the next one, as was said of them',
  async (what, setOf, teams) => {
    const { clock, set, operator, restarts, logged } = await startedEarly(setOf, { staging: 'always', ...teams });
    await clock.runTo(NINE + 30 * MINUTE_MS);
    const { hash } = what.startsWith('a team') ? teamPart(set, 'web') : set;
    expect(logged()).toMatch(/would disconnect 7 of 7 computes, none at once and 7 later/);
    expect(await operator.approve({ hash, owner: 'ann' })).toMatchObject({ ok: true });
    await clock.runTo(END - MINUTE_MS);
    expect(restarts()).toBe(0);
    await clock.runTo(END + 10 * MINUTE_MS);
    expect(restarts()).toBe(COMPUTES.length);
  },
);
