import { describe, expect, it } from 'vitest';
import { decide } from '../../src/domain/decide/decide.ts';
import type { Policy } from '../../src/domain/policy/policy.ts';
import { aCompute, aSchedule, at, aWindow, compiled } from '../support/builders.ts';
import { aSelector } from '../support/selectors.ts';

const MONDAY_NOON = at('2026-03-02T12:00:00Z');
const MONDAY_NIGHT = at('2026-03-02T23:00:00Z');
const baseline = { minCu: 2, maxCu: 8, suspendTimeoutSeconds: -1 };

const decideAt = (instantMs: number, ...policies: Policy[]) =>
  decide({ policies: compiled(...policies), compute: aCompute(), baseline, instantMs });

describe('decide', () => {
  it('lets an open window decide, and `otherwise` outside of it', () => {
    expect(decideAt(MONDAY_NOON, aSchedule()).desired.size).toEqual({ minCu: 1, maxCu: 4 });
    expect(decideAt(MONDAY_NIGHT, aSchedule()).desired).toEqual({
      size: { minCu: 0.25, maxCu: 1 },
      suspendTimeoutSeconds: 300,
    });
  });

  it('leaves a field open to the next in the order when the open window does not mention it', () => {
    const decision = decideAt(MONDAY_NOON, aSchedule());
    expect(decision.desired.suspendTimeoutSeconds).toBe(300);
    expect(decision.deciders.suspend_timeout?.proposal?.source).toBe('otherwise');
  });

  it.each<[string, Policy, Policy]>([
    [
      'an open window of lower priority over an `otherwise` of higher priority',
      aSchedule({ name: 'wins', priority: 0 }),
      aSchedule({
        name: 'loses',
        priority: 9,
        windows: [{ at: [aWindow({ days: [7] })], size: { minCu: 8, maxCu: 8 } }],
      }),
    ],
    ['the higher priority', aSchedule({ name: 'wins', priority: 2 }), aSchedule({ name: 'loses', priority: 1 })],
    [
      'an absolute interval over a recurring window',
      aSchedule({
        name: 'wins',
        windows: [
          { at: [{ kind: 'interval', startMs: MONDAY_NOON - 1, endMs: MONDAY_NIGHT }], size: { minCu: 3, maxCu: 3 } },
        ],
      }),
      aSchedule({ name: 'loses' }),
    ],
  ])('prefers %s, whatever the order of the policies', (_what, wins, loses) => {
    for (const order of [
      [wins, loses],
      [loses, wins],
    ]) {
      const decision = decideAt(MONDAY_NOON, ...order);
      expect(decision.deciders.size?.policy?.name).toBe('wins');
      expect(decision.trace).toContainEqual(
        expect.objectContaining({
          group: 'size',
          proposal: expect.objectContaining({ policy: loses }),
          code: 'outranked',
        }),
      );
    }
  });

  it('prefers the later policy, and within a policy the later window, when all else is equal', () => {
    const twoWindows = aSchedule({
      windows: [
        { at: [aWindow()], size: { minCu: 1, maxCu: 1 } },
        { at: [aWindow()], size: { minCu: 2, maxCu: 2 } },
      ],
    });
    expect(decideAt(MONDAY_NOON, twoWindows).desired.size).toEqual({ minCu: 2, maxCu: 2 });
    expect(decideAt(MONDAY_NOON, twoWindows, aSchedule({ name: 'later' })).deciders.size?.policy?.name).toBe('later');
  });

  it('asks for nothing with `leave`, and for the baseline with `baseline`', () => {
    const none = { size: null, suspendTimeoutSeconds: null };
    expect(decideAt(MONDAY_NIGHT, aSchedule({ otherwise: 'leave' })).desired).toEqual(none);
    expect(decideAt(MONDAY_NIGHT, aSchedule({ otherwise: 'baseline' })).desired).toEqual({
      size: { minCu: 2, maxCu: 8 },
      suspendTimeoutSeconds: -1,
    });
  });

  it('says so when no policy selects the compute', () => {
    const decision = decideAt(MONDAY_NOON, aSchedule({ select: aSelector({ projects: ['dev-*'] }) }));
    expect(decision).toMatchObject({ isMatched: false, desired: { size: null, suspendTimeoutSeconds: null } });
    expect(decision.trace).toEqual([{ group: 'size', code: 'unmatched' }]);
  });

  it('shows what an observing policy wants without letting it decide what is written', () => {
    const trial = aSchedule({ name: 'trial', mode: 'observe', priority: 5, otherwise: 'leave' });
    trial.windows = [{ at: [aWindow()], size: { minCu: 8, maxCu: 8 } }];
    const decision = decideAt(MONDAY_NOON, aSchedule(), trial);
    expect(decision.desired.size).toEqual({ minCu: 8, maxCu: 8 });
    expect(decision.enforced.size).toEqual({ minCu: 1, maxCu: 4 });
  });

  it('wants no timeout on a fixed size above 16 CU, which never suspends', () => {
    const big = aSchedule({ otherwise: { size: { minCu: 18, maxCu: 18 }, suspendTimeoutSeconds: 300 } });
    expect(decideAt(MONDAY_NIGHT, big).desired.suspendTimeoutSeconds).toBe(-1);
  });
});
