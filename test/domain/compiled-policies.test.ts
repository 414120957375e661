import { describe, expect, it } from 'vitest';
import { aCompute, aRestart, aSchedule, at, compiled } from '../support/builders.ts';
import { aSelector } from '../support/selectors.ts';

const NOON = at('2026-03-02T12:00:00Z');
const HALF_AN_HOUR_MS = 30 * 60_000;

describe('compiled policies', () => {
  const policies = compiled(
    aSchedule({ name: 'all' }),
    aSchedule({ name: 'old', select: aSelector({ projects: ['*'], minAgeMs: HALF_AN_HOUR_MS }) }),
    aSchedule({ name: 'others', select: aSelector({ projects: ['dev-*'] }) }),
  );

  it('know which of them select a compute, by its age where it is asked', () => {
    const young = aCompute({ createdAtMs: NOON - HALF_AN_HOUR_MS });
    expect(policies.selecting(young)).toEqual([0, 1]);
    const selects = (instantMs: number) => [0, 1, 2, 3].map((index) => policies.selects(index, young, instantMs));
    expect(selects(NOON - 1)).toEqual([true, false, false, false]);
    expect(selects(NOON)).toEqual([true, true, false, false]);
  });

  it('say at an instant what those say that select the compute then', () => {
    const young = aCompute({ createdAtMs: NOON - HALF_AN_HOUR_MS });
    const names = (instantMs: number) => {
      const { all, isMatched } = policies.effectiveFor(young, instantMs);
      return [isMatched, ...new Set(all.values.map(({ policy }) => policy.name))];
    };
    expect(names(NOON)).toEqual([true, 'old', 'all']);
    expect(names(NOON - 1)).toEqual([true, 'all']);
    expect(policies.effectiveFor(young, NOON)).toBe(policies.effectiveFor(aCompute(), NOON));
    expect(compiled().effectiveFor(young, NOON).isMatched).toBe(false);
  });

  it('need the branches where a selector names them or their roles', () => {
    const selecting = (select: object) =>
      compiled(aSchedule({ select: aSelector({ minAgeMs: 0, ...select }) })).selectsByBranch;
    expect([{ projects: ['*'] }, { branches: ['*'] }, { branchRoles: ['child'] }].map(selecting)).toEqual([
      false,
      true,
      true,
    ]);
    expect(compiled(aSchedule(), aSchedule({ select: aSelector({ branches: ['*'] }) })).selectsByBranch).toBe(true);
  });

  it('know the next and the last change of each of them, also when asked again, and none of others', () => {
    const one = compiled(aRestart());
    for (let again = 0; again < 2; again += 1) {
      expect(one.nextChangeAfter(0, NOON)).toBe(at('2026-03-02T18:00:00Z'));
      expect(one.nextChangeAfter(0, at('2026-03-02T18:00:00Z'))).toBe(at('2026-03-03T08:00:00Z'));
      expect(one.lastChangeUntil(0, NOON)).toBe(at('2026-03-02T08:00:00Z'));
    }
    expect(one.nextChangeAfter(1, NOON)).toBeUndefined();
    expect(one.lastChangeUntil(1, NOON)).toBe(Number.NEGATIVE_INFINITY);
  });
});
