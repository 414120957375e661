/** Who writes once the daemons with the newest policies, settings or engine are gone. */
import { describe, expect, it } from 'vitest';
import { policyProblems, stagedSets } from '../../src/app/rollout/write-permission.ts';
import { policySet } from '../../src/domain/policy/policy-set.ts';
import { unloadedPart, withParts } from '../../src/domain/policy/team-parts.ts';
import type { Rules } from '../../src/ports/rules.ts';
import { aGroup, rulesAt } from './group-daemon.ts';

const SMALL = rulesAt({ minCu: 0.25, maxCu: 2 });
const LARGE = rulesAt({ minCu: 4, maxCu: 8 });

describe('an old pod that is restarted in the middle of a rollout', () => {
  it.each(['is killed', 'is stopped'])('leaves the group to the new ones within a minute once it %s', async (how) => {
    const group = aGroup();
    const fresh = await group.start('new', { rules: LARGE });
    expect(await group.pass(10)).toEqual(['new']);
    const old = await group.start('old', { rules: SMALL });
    expect(await group.pass(120)).toEqual(['old']);
    if (how === 'is killed') old.kill();
    else await old.stop();
    expect(await group.pass(29)).toEqual([]);
    expect(await group.pass(31)).toEqual(['new']);
    expect(fresh.said('ebb.generation_taken_over')).toHaveLength(1);
  });

  it('leaves it to the one of several that loaded its policies last', async () => {
    const group = aGroup();
    await group.start('one', { rules: rulesAt({ minCu: 1, maxCu: 2 }) });
    await group.start('two', { rules: rulesAt({ minCu: 2, maxCu: 2 }) });
    const last = await group.start('last', { rules: LARGE });
    await group.pass(60);
    last.kill();
    await group.pass(60);
    expect(await group.pass(60)).toEqual(['two']);
  });
});

describe('a newer release', () => {
  it('is not superseded by an older one that starts, or loads other policies, while it runs', async () => {
    const group = aGroup();
    await group.start('new', { rules: LARGE, decisionVersion: 2 });
    const old = await group.start('old', { rules: SMALL });
    expect(await group.pass(120)).toEqual(['new']);
    old.write(rulesAt({ minCu: 1, maxCu: 2 }));
    expect(await group.pass(120)).toEqual(['new']);
    expect(old.said('ebb.superseded').map(({ message }) => message)).toEqual([
      expect.stringContaining('a daemon of a newer release decides for the group'),
    ]);
  });

  it.each(['before it died', 'after it died'])('is followed by an older one that started %s', async (when) => {
    const group = aGroup();
    const fresh = await group.start('new', { rules: LARGE, decisionVersion: 2 });
    const startOld = () => group.start('old', { rules: LARGE });
    if (when === 'before it died') await startOld();
    await group.pass(60);
    fresh.kill();
    if (when === 'after it died') await startOld();
    expect(await group.pass(29)).toEqual([]);
    expect(await group.pass(31)).toEqual(['old']);
  });

  it('is followed at once by an older one on an embedded store, which nobody else has', async () => {
    const group = aGroup();
    const fresh = await group.start('new', { rules: LARGE, decisionVersion: 2, isAlone: true });
    await group.pass(4);
    await fresh.stop();
    await group.start('old', { rules: LARGE, isAlone: true });
    expect(await group.pass(4)).toEqual(['old']);
  });

  it('writes again, and the older one does not, where it was only silent', async () => {
    const group = aGroup();
    const fresh = await group.start('new', { rules: LARGE, decisionVersion: 2 });
    await group.start('old', { rules: SMALL });
    await group.pass(10);
    fresh.kill();
    expect(await group.pass(60)).toEqual(['old']);
    fresh.resume();
    await group.pass(4);
    expect(await group.pass(120)).toEqual(['new']);
  });
});

describe('a daemon of 0.1.0 beside new ones', () => {
  it('writes nothing once other policies are registered, and the new ones go on at once', async () => {
    const group = aGroup();
    const old = await group.startOld(SMALL);
    expect(old.mayWrite()).toBe(true);
    await group.start('new', { rules: LARGE });
    expect(old.mayWrite()).toBe(false);
    expect(await group.pass(4)).toEqual(['new']);
    await group.pass(120);
    expect(old.mayWrite()).toBe(false);
  });

  it('is waited for while it runs with what it loaded last, and then the new ones write', async () => {
    const group = aGroup();
    await group.start('new', { rules: LARGE });
    await group.pass(4);
    const old = await group.startOld(SMALL);
    expect(await group.pass(300)).toEqual([]);
    expect(old.mayWrite()).toBe(true);
    old.kill();
    expect(await group.pass(60)).toEqual(['new']);
    expect(old.mayWrite()).toBe(false);
  });

  it('writes on with the same policies, also where it registered them last', async () => {
    const group = aGroup();
    const old = await group.startOld(SMALL);
    await group.start('new', { rules: SMALL });
    expect(await group.pass(4)).toEqual(['new']);
    expect(old.mayWrite()).toBe(true);
  });
});

describe('a daemon that starts without the policies of a team', () => {
  const DATA = { name: 'data', projects: ['web-*'] };
  const ofTeam = (rules: Rules) => {
    const policies = rules.policies.policies.map((policy) => {
      const select = { ...policy.select, scope: DATA.projects };
      return { ...policy, name: 'data/hours', team: 'data', select };
    });
    return { ...rules, policies: policySet(policies, new Map()), teams: [DATA] };
  };
  const UNREAD = { ...SMALL, policies: unloadedPart(DATA), teams: [DATA] };

  it.each([
    ['which are staged', ofTeam(LARGE), true],
    ['whose files are broken', UNREAD, false],
  ])('%s, goes on with those that were last in effect, also if no other daemon has them', async (_, rules, stages) => {
    const group = aGroup();
    const before = await group.start('before', { rules: ofTeam(SMALL), stages });
    await group.pass(4);
    const fresh = await group.start('fresh', { rules, stages });
    expect(await group.pass(10)).toEqual(['before', 'fresh']);
    before.kill();
    expect(await group.pass(120)).toEqual(['fresh']);
    expect(fresh.deps.rules.current.policies.set.hash).toBe(ofTeam(SMALL).policies.hash);
  });

  it('says so where it stages newer ones', async () => {
    const group = aGroup();
    await group.start('before', { rules: ofTeam(SMALL), stages: true });
    await group.pass(4);
    const fresh = await group.start('fresh', { rules: ofTeam(LARGE), stages: true });
    await group.pass(10);
    expect(fresh.said('ebb.policies_staged').map(({ message }) => message)).toEqual([
      expect.stringContaining('it is staged, and the current policies of data stay in effect'),
    ]);
  });

  it('goes on with them within a scope that has become smaller', async () => {
    const group = aGroup();
    const before = await group.start('before', { rules: ofTeam(SMALL) });
    await group.pass(4);
    await before.stop();
    const narrow = { ...DATA, projects: ['web-1'] };
    const fresh = await group.start('fresh', { rules: { ...UNREAD, policies: unloadedPart(narrow), teams: [narrow] } });
    const [policy] = fresh.deps.rules.current.policies.set.policies;
    expect(policy).toMatchObject({ name: 'data/hours', select: { scope: ['web-1'] } });
  });

  it('goes on with them though the store has lost them since, which another daemon has found', async () => {
    const group = aGroup();
    await group.start('before', { rules: ofTeam(SMALL) });
    await group.pass(4);
    await group.store.deleteDocuments('team-policies', ['data']);
    group.loss.atMs = group.clock.now();
    await group.pass(4);
    const fresh = await group.start('fresh', { rules: UNREAD });
    expect(fresh.deps.rules.current.policies.set.hash).toBe(ofTeam(SMALL).policies.hash);
  });

  it('finds none of a team that has left the settings since', async () => {
    const group = aGroup();
    const before = await group.start('before', { rules: ofTeam(SMALL) });
    await group.pass(4);
    expect([...(await group.store.documents('team-policies')).keys()]).toEqual(['data']);
    before.write(SMALL);
    await group.pass(10);
    expect(await group.store.documents('team-policies')).toEqual(new Map());
  });

  it('has none of them if a connection string stands in their files, which is not stored', async () => {
    const group = aGroup();
    const source = { ...{ name: 'pg', team: 'data', file: 'data.yaml', everyMs: 60_000, from: 'postgres' as const } };
    const dsn = { from: 'text' as const, text: 'postgres://ann:secret@$host/app' };
    const { policies } = ofTeam(SMALL).policies;
    const withSource = policySet(policies, new Map([['pg', { ...source, dsn }]]));
    await group.start('before', { rules: { ...ofTeam(SMALL), policies: withSource } });
    await group.pass(4);
    expect(await group.store.documents('team-policies')).toEqual(new Map());
  });

  it.each([
    ['which are staged', ofTeam(LARGE), true, 1],
    ['whose files are broken', UNREAD, false, 1],
    ['whose files are broken, of a newer release', UNREAD, false, 2],
  ])(
    '%s and are not stored, leaves the group to one that has them, and takes over once that is gone',
    async (_, rules, stages, decisionVersion) => {
      const group = aGroup();
      const before = await group.start('before', { rules: ofTeam(SMALL), stages });
      await group.pass(4);
      await group.store.deleteDocuments('team-policies', ['data']);
      const fresh = await group.start('fresh', { rules, stages, decisionVersion });
      expect(await group.pass(120)).toEqual(['before']);
      expect(fresh.said('ebb.superseded').map(({ message }) => message)).toEqual(policyProblems(fresh.deps));
      expect(policyProblems(fresh.deps)).toEqual([
        expect.stringMatching(
          /^another daemon has the policies of data \(.*\), which are not loaded here: this one writes/,
        ),
      ]);
      await before.stop();
      expect(await group.pass(29)).toEqual([]);
      expect(await group.pass(31)).toEqual(['fresh']);
    },
  );

  it('decides for the group once what is staged is approved', async () => {
    const group = aGroup();
    await group.start('before', { rules: ofTeam(SMALL), stages: true });
    await group.pass(4);
    const fresh = await group.start('fresh', { rules: ofTeam(LARGE), stages: true });
    await group.pass(60);
    const [staged] = stagedSets(fresh.deps);
    const approvedAtMs = group.clock.now();
    await group.store.approve({ hash: staged?.hash ?? '', who: 'ann', atMs: approvedAtMs });
    await group.pass(4);
    expect(fresh.deps.rules.current.becameCurrent?.[0]?.currentSinceMs).toBeGreaterThan(approvedAtMs);
    expect(await group.pass(60)).toEqual(['fresh']);
  });

  it('changes what it has loaded of others while it is alone', async () => {
    const group = aGroup();
    const only = await group.start('only', { rules: UNREAD });
    await group.pass(4);
    only.write({ ...UNREAD, policies: withParts(UNREAD.policies, new Map([['', SMALL.policies]])) });
    await group.pass(4);
    expect(await group.pass(60)).toEqual(['only']);
  });
});

describe('what would be taken over', () => {
  it('is staged where it would disconnect many computes at once', async () => {
    const group = aGroup();
    const before = await group.start('before', { rules: LARGE });
    const daemon = await group.start('one', { rules: LARGE, stages: true });
    await group.pass(4);
    await before.stop();
    const other = await group.start('other', { rules: SMALL, stages: true });
    expect(await group.pass(4)).toEqual(['one', 'other']);
    other.kill();
    expect(await group.pass(120)).toEqual([]);
    const [staged] = stagedSets(daemon.deps);
    expect(staged?.message).toContain(
      'would disconnect 10 of 10 computes at once: it is staged, and nothing is written',
    );
    await group.store.approve({ hash: staged?.hash ?? '', who: 'ann', atMs: 0 });
    expect(await group.pass(4)).toEqual(['one']);
    expect(stagedSets(daemon.deps)).toEqual([]);
  });
});

describe('a daemon that could not look at the others for a while', () => {
  it('does not take the silence of that time for their end', async () => {
    const group = aGroup();
    const old = await group.start('old', { rules: SMALL });
    const fresh = await group.start('new', { rules: LARGE });
    await group.pass(10);
    for (const daemon of [old, fresh]) daemon.kill();
    await group.pass(300);
    old.resume();
    expect(await group.pass(10)).toEqual([]);
    fresh.resume();
    expect(await group.pass(120)).toEqual(['new']);
  });
});
