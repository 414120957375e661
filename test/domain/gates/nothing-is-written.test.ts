import { describe, expect, it } from 'vitest';
import type { Freeze } from '../../../src/domain/overrides/freezes.ts';
import type { Policy } from '../../../src/domain/policy/policy.ts';
import { unloadedPart } from '../../../src/domain/policy/team-parts.ts';
import {
  aCompute,
  aFreeze,
  aHold,
  aLimits,
  aRecord,
  aRestart,
  aSchedule,
  at,
  compiled,
  planFor,
} from '../../support/builders.ts';
import { aSelector, bounded } from '../../support/selectors.ts';

const NOON = at('2026-03-02T12:00:00Z');
const size = (minCu: number, maxCu = minCu) => ({ minCu, maxCu });
const wanting = (wanted: ReturnType<typeof size>, fields: Partial<Policy> = {}) =>
  ({ ...aSchedule({ windows: [], otherwise: { size: wanted } }), ...fields }) as Policy;
const raising = wanting(size(4));
const lowering = wanting(size(0.25));

const planWith = (policies: Policy[], more: Partial<Parameters<typeof planFor>[0]> = {}) =>
  planFor({
    policies: compiled(...policies),
    compute: aCompute({ state: 'idle' }),
    record: aRecord(),
    nowMs: NOON,
    ...more,
  });

const until = (policies: Policy[], more: Partial<Parameters<typeof planFor>[0]> = {}) => {
  const { heldBy, untilMs } = planWith(policies, more);
  return [...heldBy, untilMs];
};

describe('observe', () => {
  it('holds what only an observing policy wants, and not what another one wants', () => {
    expect(planWith([wanting(size(4), { mode: 'observe' })])).toMatchObject({
      verdict: 'wait',
      heldBy: ['observe'],
      reasons: [
        { code: 'otherwise' },
        { code: 'observe', message: 'only policies that observe want it: nothing is written' },
      ],
    });
    const both = [wanting(size(4), { mode: 'observe', priority: 5, name: 'trial' } as Partial<Policy>), lowering];
    expect(planWith(both).actions).toMatchObject([{ fields: size(0.25), policy: 'office-hours' }]);
  });

  it('holds what an observing policy wants also where a writing one shapes it', () => {
    const plan = planWith([wanting(size(8), { mode: 'observe' }), aLimits()]);
    expect(plan).toMatchObject({
      verdict: 'wait',
      heldBy: ['observe'],
      actions: [{ fields: size(4), policy: 'limits' }],
    });
  });

  it('is told from a daemon that only observes', () => {
    expect(planWith([raising], { mode: 'observe' }).reasons.at(-1)?.message).toBe(
      'ebb runs in observe mode: nothing is written',
    );
  });
});

describe('a freeze', () => {
  const opens = at('2026-03-02T11:00:00Z');
  const closes = at('2026-03-02T13:00:00Z');
  const interval = [{ kind: 'interval' as const, startMs: opens, endMs: closes }];

  it('of a policy holds everything until it ends', () => {
    const freeze = aFreeze({ at: interval });
    expect(until([raising, freeze])).toEqual(['frozen', closes]);
    expect(planWith([raising, freeze]).reasons.at(-1)?.message).toBe(
      'freeze freezes this compute until 2026-03-02T13:00:00Z',
    );
    expect(planWith([raising, freeze], { nowMs: closes }).verdict).toBe('act');
    expect(planWith([raising, freeze], { nowMs: opens - 1 }).verdict).toBe('act');
    expect(until([raising, aFreeze()])).toEqual(['frozen', undefined]);
    expect(planWith([raising, aFreeze()]).reasons.at(-1)?.message).toBe('freeze freezes this compute');
  });

  it('of a team without policies in effect says so, since nobody froze anything', () => {
    const [notLoaded] = unloadedPart({ name: 'web', projects: ['*'] }).policies;
    const { heldBy, reasons } = planWith([raising, notLoaded as Policy]);
    expect(heldBy).toEqual(['not_loaded']);
    expect(reasons.at(-1)?.message).toBe(
      "the policies of web are staged or can't be read, and it has no others: nothing is written",
    );
    expect(planWith([raising, notLoaded as Policy, aFreeze()]).heldBy).toEqual(['frozen']);
  });

  it('may let raises pass, and nothing else', () => {
    const freeze = aFreeze({ allowRaise: true });
    expect(planWith([raising, freeze]).verdict).toBe('act');
    expect(planWith([lowering, freeze]).heldBy).toEqual(['frozen']);
    const timed = aSchedule({ windows: [], otherwise: { size: size(4), suspendTimeoutSeconds: 600 } });
    expect(planWith([timed, freeze])).toMatchObject({
      verdict: 'act',
      actions: [{ fields: size(4) }],
      heldBy: ['frozen'],
    });
    expect(planWith([raising, freeze, aFreeze({ at: interval })]).heldBy).toEqual(['frozen']);
  });

  it('of a policy that observes, or that selects others, freezes nothing', () => {
    expect(planWith([raising, aFreeze({ mode: 'observe' })]).verdict).toBe('act');
    expect(planWith([raising, aFreeze({ select: aSelector({ projects: ['x'] }) })]).verdict).toBe('act');
  });

  it('of a person holds until it expires, of all computes or of those that it selects', () => {
    const byAnn = (fields: Partial<Freeze> = {}): Freeze => ({
      ...{
        id: 'f1',
        owner: 'ann',
        reason: 'incident',
        createdAtMs: NOON,
        expiresAtMs: closes,
        select: 'all',
        allowRaise: false,
      },
      ...fields,
    });
    expect(until([raising], { freezes: [byAnn()] })).toEqual(['frozen', closes]);
    expect(planWith([raising], { freezes: [byAnn()] }).reasons.at(-1)?.message).toBe(
      'frozen by ann until 2026-03-02T13:00:00Z: incident',
    );
    const { policies: notLoaded } = unloadedPart({ name: 'web', projects: ['*'] });
    expect(planWith([raising, ...notLoaded], { freezes: [byAnn()] }).heldBy).toEqual(['frozen']);
    // Whoever set it may have a clock that is ahead.
    expect(planWith([raising], { freezes: [byAnn({ createdAtMs: NOON + 1 })] }).heldBy).toEqual(['frozen']);
    const byRole = byAnn({ select: bounded({ branchRoles: ['protected'] }) });
    expect(planWith([raising], { freezes: [byRole] }).heldBy).toEqual(['frozen']);
    const main = aCompute({ state: 'idle', branchName: 'main', branchRoles: ['default'] });
    const named = (branches: string[]) => [byAnn({ select: bounded({ branches }) })];
    expect(planWith([raising], { compute: main, freezes: named(['main']) }).heldBy).toEqual(['frozen']);
    expect(planWith([raising], { compute: main, freezes: named(['dev']) }).verdict).toBe('act');
    expect(planWith([raising], { compute: main, freezes: [byRole] }).verdict).toBe('act');
    expect(planWith([raising], { freezes: [byAnn({ expiresAtMs: NOON })] }).verdict).toBe('act');
    expect(planWith([raising], { freezes: [byAnn({ allowRaise: true })] }).verdict).toBe('act');
    expect(planWith([lowering], { freezes: [byAnn({ allowRaise: true })] }).heldBy).toEqual(['frozen']);
    const select = (projects: string[]) => ({ select: bounded({ projects, minAgeMs: 999_999_999 }) });
    expect(planWith([raising], { freezes: [byAnn(select(['web-*']))] }).heldBy).toEqual(['frozen']);
    expect(planWith([raising], { freezes: [byAnn(select(['dev-*']))] }).verdict).toBe('act');
  });
});

describe('a hold', () => {
  const keeping = aHold({ freeze: true, createdAtMs: 5, expiresAtMs: NOON + 1000 });
  const restart = aRestart({ at: [{ kind: 'always' }], everyMs: 1 });

  it('may keep a compute as it is until it expires', () => {
    expect(until([raising], { holds: [keeping] })).toEqual(['held', NOON + 1000]);
    expect(planWith([raising], { holds: [keeping] }).reasons.at(-1)?.message).toBe(
      'held as it is by ann until 2026-03-02T12:00:01Z: load test',
    );
    const awake = aCompute({ startedAtMs: 0 });
    expect(planWith([restart], { holds: [keeping], compute: awake }).heldBy).toEqual(['held']);
    expect(planWith([raising], { holds: [keeping], nowMs: NOON + 1000 }).verdict).toBe('act');
  });

  it('that is newer and names a field sets it all the same; one that is older does not', () => {
    const sizing = (createdAtMs: number) => aHold({ id: 'sizing', size: size(8), createdAtMs });
    expect(planWith([raising], { holds: [keeping, sizing(6)] })).toMatchObject({
      verdict: 'act',
      actions: [{ fields: size(8), policy: 'hold sizing' }],
    });
    expect(planWith([raising], { holds: [keeping, sizing(4)] }).heldBy).toEqual(['held']);
    const both = aSchedule({ windows: [], otherwise: { size: size(4), suspendTimeoutSeconds: 600 } });
    expect(planWith([both], { holds: [keeping, sizing(6)] })).toMatchObject({
      actions: [{ fields: size(8) }],
      heldBy: ['held'],
    });
    const timing = aHold({ id: 'timing', suspendTimeoutSeconds: 60, createdAtMs: 6 });
    expect(planWith([raising], { holds: [keeping, timing] })).toMatchObject({
      actions: [{ fields: { suspendTimeoutSeconds: 60 } }],
      heldBy: ['held'],
    });
  });

  it('counts as soon as it is known, also where the clock that set it is ahead; of two the one that was set later', () => {
    const ahead = (id: string, aheadMs: number, cu: number) =>
      aHold({ id, size: size(cu), createdAtMs: NOON + aheadMs, expiresAtMs: NOON + 60_000 });
    const [first, second] = [ahead('first', 3_000, 8), ahead('second', 4_000, 4)];
    expect(planWith([raising], { holds: [first] })).toMatchObject({ actions: [{ fields: size(8) }] });
    for (const holds of [
      [first, second],
      [second, first],
    ])
      expect(planWith([raising], { holds })).toMatchObject({ actions: [{ policy: 'hold second' }] });
  });

  it('is applied at once, whatever policies, settings and people said before', () => {
    const disruption = {
      raise: { when: 'idle', atDeadline: 'apply' },
      lower: { when: 'idle', atDeadline: 'apply' },
    } as const;
    const manual = (seenAtMs: number) => ({ size: { fields: size(0.25, 2), seenAtMs, raises: true } });
    const setAtMs = NOON - 2;
    for (const wanted of [size(0.25), size(8)]) {
      const plan = planWith([raising], {
        compute: aCompute(),
        record: aRecord({ manual: manual(setAtMs) }),
        holds: [aHold({ size: wanted, createdAtMs: setAtMs })],
        disruption,
      });
      expect(plan).toMatchObject({ verdict: 'act', actions: [{ fields: wanted, priority: Number.MAX_SAFE_INTEGER }] });
    }
    // But not against what somebody has set since.
    const since = {
      record: aRecord({ manual: manual(setAtMs + 1) }),
      holds: [aHold({ size: size(8), createdAtMs: setAtMs })],
    };
    expect(planWith([raising], { compute: aCompute(), ...since }).heldBy).toEqual(['manual_change']);
  });
});
