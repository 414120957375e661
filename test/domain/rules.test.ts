import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decide } from '../../src/domain/decide/decide.ts';
import { ruleOf } from '../../src/domain/policy/kinds/kinds.ts';
import type { Policy } from '../../src/domain/policy/policy.ts';
import { aFreeze, aHeadroom, aLimits, aRestart, aSchedule, at, aWindow, compiled } from '../support/builders.ts';
import { baselines, computes, connectionHistories, policySets } from './arbitraries.ts';

const EIGHT = at('2026-03-02T08:00:00Z');
const NOON = at('2026-03-02T12:00:00Z');
const SIX = at('2026-03-02T18:00:00Z');
const MINUTE_MS = 60_000;
const FRIDAY_SIX = at('2026-02-27T18:00:00Z');
const small = { minCu: 1, maxCu: 1 };

/** What a policy says, without the policy itself. */
const directivesOf = (policy: Policy, instantMs: number) =>
  ruleOf(policy)
    .directivesAt(policy, 7, instantMs)
    .map(({ policy: speaker, policyIndex, ...directive }) => {
      expect([speaker, policyIndex]).toEqual([policy, 7]);
      return directive;
    });
const next = (policy: Policy, instantMs: number) => ruleOf(policy).nextChangeAfter(policy, instantMs);
const last = (policy: Policy, instantMs: number) => ruleOf(policy).lastChangeUntil(policy, instantMs);

describe('a freeze', () => {
  it('says nothing while it is closed, and until when it lasts where it ends', () => {
    const office = aFreeze({ at: [aWindow()] });
    expect(directivesOf(office, EIGHT - 1)).toStrictEqual([]);
    expect(directivesOf(office, EIGHT)).toStrictEqual([{ type: 'freeze', allowRaise: false, untilMs: SIX }]);
    expect(directivesOf(aFreeze(), EIGHT)).toStrictEqual([{ type: 'freeze', allowRaise: false }]);
    expect([last(office, NOON), next(office, NOON)]).toEqual([EIGHT, SIX]);
  });
});

describe('a restart', () => {
  it('says since when its window is open, and nothing while it is closed', () => {
    expect(directivesOf(aRestart(), SIX)).toStrictEqual([]);
    expect(directivesOf(aRestart(), NOON)).toStrictEqual([{ type: 'restart', openSinceMs: EIGHT }]);
    expect([last(aRestart(), NOON), next(aRestart(), NOON)]).toEqual([EIGHT, SIX]);
  });
});

it.each([
  ['limits', aLimits({ size: { maxCu: 4 } }), { type: 'bounds', hard: false, ranges: { size: { low: 0, high: 4 } } }],
  ['headroom', aHeadroom(), { type: 'need', need: aHeadroom() }],
])('%s say the same at all times', (_kind, policy, directive) => {
  expect(directivesOf(policy, NOON)).toStrictEqual([directive]);
  expect([last(policy, NOON), next(policy, NOON)]).toEqual([Number.NEGATIVE_INFINITY, undefined]);
});

describe('a schedule', () => {
  const LEAD_MS = 10 * MINUTE_MS;
  const otherwise = { type: 'values', source: 'otherwise', windowIndex: -1 };
  const ready = aSchedule({ windows: [{ at: [aWindow()], size: small, readyLeadMs: LEAD_MS }], otherwise: 'leave' });

  it('says what its open windows want, and what it wants otherwise, field by field', () => {
    const open = { type: 'values', source: 'recurring', windowIndex: 0, at: [aWindow()], openSinceMs: EIGHT };
    const closed = { at: [aWindow({ days: [7] })], size: small };
    const timed = aSchedule({
      windows: [{ at: [aWindow()], suspendTimeoutSeconds: 60 }, closed],
      otherwise: { size: small },
    });
    expect(directivesOf(timed, NOON)).toStrictEqual([
      { ...open, suspendTimeoutSeconds: 60 },
      { ...otherwise, size: small },
    ]);
    expect(directivesOf({ ...timed, otherwise: 'baseline' }, SIX)).toStrictEqual([
      { ...otherwise, size: 'baseline', suspendTimeoutSeconds: 'baseline' },
    ]);
    expect(directivesOf({ ...timed, otherwise: 'leave' }, SIX)).toStrictEqual([]);
  });

  it('with ready says so from its lead on, and changes at the lead and at both ends', () => {
    expect(directivesOf(ready, EIGHT - LEAD_MS - 1)).toStrictEqual([]);
    expect(directivesOf(ready, EIGHT - LEAD_MS)).toStrictEqual([
      {
        ...{ type: 'values', source: 'recurring', windowIndex: 0, at: [aWindow()] },
        ...{ openSinceMs: EIGHT, startsEarly: true, size: small },
      },
    ]);
    const changes = [EIGHT - LEAD_MS, EIGHT, SIX];
    expect([changes[0], NOON, SIX].map((ms) => last(ready, ms ?? 0))).toEqual(changes);
    expect(last(ready, EIGHT - LEAD_MS - 1)).toBe(FRIDAY_SIX);
    expect([FRIDAY_SIX, EIGHT - LEAD_MS, SIX - 1].map((ms) => next(ready, ms))).toEqual(changes);
  });

  it('is never ready for what will not open any more, and has no change ahead', () => {
    const once = [{ kind: 'interval' as const, startMs: EIGHT, endMs: NOON }];
    const past = aSchedule({ windows: [{ at: once, size: small, readyLeadMs: LEAD_MS }], otherwise: 'leave' });
    expect(directivesOf(past, NOON)).toStrictEqual([]);
    expect([last(past, SIX), next(past, NOON)]).toEqual([NOON, undefined]);
    const never = aSchedule({ windows: [] });
    expect([last(never, SIX), next(never, NOON)]).toEqual([Number.NEGATIVE_INFINITY, undefined]);
  });

  it('whose window is open by an interval and by the week changes also where the interval ends', () => {
    const interval = { kind: 'interval' as const, startMs: NOON, endMs: SIX - 1 };
    const mixed = aSchedule({ windows: [{ at: [aWindow(), interval], size: small }], otherwise: 'leave' });
    const source = (instantMs: number) =>
      directivesOf(mixed, instantMs).map((directive) => 'source' in directive && directive.source);
    expect([NOON - 1, NOON, SIX - 1, SIX].map(source)).toEqual([['recurring'], ['absolute'], ['recurring'], []]);
    expect([next(mixed, EIGHT), next(mixed, NOON), last(mixed, SIX - 2), last(mixed, NOON - 1)]).toEqual([
      ...[NOON, SIX - 1, NOON, EIGHT],
    ]);
  });
});

describe('what a policy may change', () => {
  const changes = (policy: Policy) => ruleOf(policy).mayChange(policy);
  const office = { at: [aWindow()] };

  it.each<[string, Policy, string[]]>([
    [
      'a size in any window',
      aSchedule({ windows: [office, { ...office, size: small }], otherwise: 'leave' }),
      ['size'],
    ],
    [
      'a timeout otherwise',
      aSchedule({ windows: [office], otherwise: { suspendTimeoutSeconds: 60 } }),
      ['suspend_timeout'],
    ],
    ['the baseline otherwise', aSchedule({ windows: [office], otherwise: 'baseline' }), ['size', 'suspend_timeout']],
    ['nothing of a schedule without values', aSchedule({ windows: [office], otherwise: 'leave' }), []],
    ['bounds of the size', aLimits(), ['size']],
    ['bounds of both', aLimits({ suspendTimeout: { maxSeconds: 300 } }), ['size', 'suspend_timeout']],
    ['headroom', aHeadroom(), ['size']],
    ['a restart', aRestart(), []],
    ['a freeze', aFreeze(), []],
  ])('is that of %s', (_what, policy, groups) => {
    expect(changes(policy)).toEqual(groups);
  });

  it('is all that a decision changes', () => {
    const around = { zone: 'Europe/Berlin', fromMs: at('2026-03-02T00:00:00Z'), days: 7 };
    const minutes = fc.integer({ min: 0, max: 7 * 1440 });
    const given = [policySets(around), computes, baselines, connectionHistories(EIGHT), minutes] as const;
    fc.assert(
      fc.property(...given, (policies, compute, baseline, connections, minute) => {
        const instantMs = EIGHT + minute * MINUTE_MS;
        const { desired } = decide({ policies: compiled(...policies), compute, baseline, connections, instantMs });
        const groups = policies.flatMap(changes);
        if (!groups.includes('size')) expect(desired.size).toBeNull();
        if (!groups.includes('suspend_timeout')) expect(desired.suspendTimeoutSeconds).toBeNull();
      }),
    );
  });
});
