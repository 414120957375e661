/** Which of several daemons on one store may write. */
import { describe, expect, it } from 'vitest';
import { stagedSets } from '../../src/app/rollout/write-permission.ts';
import { aGroup, rulesAt } from './group-daemon.ts';

const SMALL = rulesAt({ minCu: 0.25, maxCu: 2 });
const LARGE = rulesAt({ minCu: 4, maxCu: 8 });
/** The same policies as {@link LARGE}; awake computes are left alone. */
const PATIENT = { ...LARGE, disruption: { ...LARGE.disruption, raise: { when: 'idle', atDeadline: 'skip' } } as const };

describe('daemons with the same policies and other settings', () => {
  it('do not both write: the one whose settings were loaded last does', async () => {
    const group = aGroup();
    const patient = await group.start('patient', { rules: PATIENT });
    expect(await group.pass(4)).toEqual(['patient']);
    const direct = await group.start('direct', { rules: LARGE });
    expect(await group.pass(4)).toEqual(['direct']);
    expect(patient.said('ebb.superseded')).toHaveLength(1);
    patient.write(LARGE);
    expect(await group.pass(4)).toEqual(['direct', 'patient']);
    direct.write(PATIENT);
    await group.pass(4);
    expect(await group.pass(4)).toEqual(['direct']);
  });

  it('does not come from a file that was written seconds before a start, unless the group has none or it rests', async () => {
    const group = aGroup();
    await group.start('first', { rules: SMALL, writtenAgoMs: 1_000 });
    expect(await group.pass(3)).toEqual(['first']);
    const second = await group.start('second', { rules: LARGE, writtenAgoMs: 1_000 });
    const whole = rulesAt({ minCu: 1, maxCu: 2 });
    second.write(whole);
    expect(await group.pass(8)).toEqual(['first']);
    expect(second.said('ebb.policies_delayed')).not.toEqual([]);
    expect(await group.pass(6)).toContain('second');
    expect((await group.store.generation())?.setHash).toBe(whole.policies.hash);
  });

  it('decide alike whatever the order of keys, and whether a default is written down', async () => {
    const group = aGroup();
    await group.start('one', { rules: { ...SMALL, disruption: { cooldownMs: 600_000, atOnce: 0.5 } } });
    await group.start('two', { rules: { ...SMALL, disruption: { atOnce: 0.5 }, manualChanges: { kind: 'respect' } } });
    expect(await group.pass(4)).toEqual(['one', 'two']);
  });

  it('decide alike whatever they say of prices, owners, receivers and the revision', async () => {
    const group = aGroup();
    const costs = { ...SMALL.costs, owners: [['web-*', 'web']] as const, prices: { ...SMALL.costs.prices, launch: 9 } };
    await group.start('one', { rules: SMALL });
    await group.start('two', { rules: { ...SMALL, costs, revision: 'abc' } });
    expect(await group.pass(4)).toEqual(['one', 'two']);
  });
});

describe('settings that change alone', () => {
  it('are staged where they would disconnect many computes at once, and approved by a hash of their own', async () => {
    const group = aGroup();
    const daemon = await group.start('one', { rules: PATIENT, stages: true });
    await group.pass(4);
    await group.store.approve({ hash: PATIENT.policies.hash, who: 'ann', atMs: 0 });
    daemon.write(LARGE);
    await group.pass(4);
    const [staged] = stagedSets(daemon.deps);
    expect(staged).toMatchObject({ impact: { disconnected: 10, computes: 10 } });
    expect(staged?.message).toContain('by other settings or another release, would disconnect 10 of 10');
    expect(daemon.deps.rules.current.disruption).toEqual(PATIENT.disruption);
    await group.store.approve({ hash: staged?.hash ?? '', who: 'ann', atMs: 0 });
    expect(await group.pass(4)).toEqual(['one']);
    expect(daemon.deps.rules.current.disruption).toEqual(LARGE.disruption);
    expect(stagedSets(daemon.deps)).toEqual([]);
  });

  it('count at once where they would not, and are discarded where the old ones are restored', async () => {
    const group = aGroup();
    const daemon = await group.start('one', { rules: PATIENT, stages: true });
    await group.pass(4);
    const before = await group.store.generation();
    daemon.write({ ...PATIENT, disruption: { ...PATIENT.disruption, atOnce: 0.5 } });
    await group.pass(4);
    expect(daemon.deps.rules.current.disruption.atOnce).toBe(0.5);
    expect((await group.store.generation())?.number).toBeGreaterThan(before?.number ?? 0);
    daemon.write(LARGE);
    await group.pass(4);
    daemon.write({ ...PATIENT, disruption: { ...PATIENT.disruption, atOnce: 0.5 } });
    await group.pass(4);
    expect(stagedSets(daemon.deps)).toEqual([]);
  });

  it('are staged at a restart too', async () => {
    const group = aGroup();
    const before = await group.start('before', { rules: PATIENT, stages: true });
    await group.pass(4);
    before.kill();
    const after = await group.start('after', { rules: LARGE, stages: true });
    expect(await group.pass(4)).toEqual([]);
    expect(stagedSets(after.deps)).toMatchObject([{ impact: { disconnected: 10 } }]);
  });
});

describe('a release that decides otherwise', () => {
  it('has its impact counted, and then keeps the older one from writing', async () => {
    const group = aGroup();
    await group.start('old', { rules: SMALL, stages: true });
    await group.pass(4);
    await group.start('new', { rules: SMALL, stages: true, decisionVersion: 2 });
    expect(await group.pass(4)).toEqual(['new', 'old']);
    expect(await group.pass(4)).toEqual(['new']);
  });
});
describe('a store that came back older', () => {
  it('lets no superseded daemon write: what is newest is put back by the daemons that know of it', async () => {
    for (const survivor of ['newer', 'older'] as const) {
      const group = aGroup();
      const older = await group.start('older', { rules: SMALL });
      await group.pass(4);
      const copy = group.held.current;
      const newer = await group.start('newer', { rules: LARGE });
      expect(await group.pass(4)).toEqual(['newer']);
      const newest = group.held.current;
      if (survivor === 'older') newer.kill();
      group.held.current = copy;
      expect(await group.pass(4)).toEqual(survivor === 'newer' ? ['newer'] : []);
      expect(group.held.current).toEqual(newest);
      expect([...older.said('ebb.generation_restored'), ...newer.said('ebb.generation_restored')]).toHaveLength(1);
    }
  });
});
