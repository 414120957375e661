import { describe, expect, it } from 'vitest';
import type { Verdict } from '../../../src/domain/guards/verdict.ts';
import type { Policy } from '../../../src/domain/policy/policy.ts';
import { aCompute, aGuard, aHold, aLimits, aRecord, aSchedule, at, compiled, planFor } from '../../support/builders.ts';

const EIGHT = at('2026-03-02T08:00:00Z');
const SIX = at('2026-03-02T18:00:00Z');
const disruption = { lower: { when: 'any', atDeadline: 'apply' } } as const;
const large = aCompute({ minCu: 1, maxCu: 4 });
const verdict = (state: Verdict['state']): Verdict => ({ state, message: 'said so' });
const plan = (
  others: Policy[],
  { said, ...options }: Partial<Parameters<typeof planFor>[0]> & { said?: Verdict | undefined },
) =>
  planFor({
    ...{ policies: compiled(aSchedule({ disruption }), ...others), compute: large, record: aRecord(), nowMs: SIX },
    ...{ verdictOf: () => said, ...options },
  });

describe('the gate of a guard', () => {
  it('holds the lowering of an awake compute while the guard is bad, unknown, or was not asked', () => {
    for (const said of [verdict('bad'), verdict('unknown'), undefined]) {
      const { verdict: result, heldBy, untilMs } = plan([aGuard()], { said });
      expect([result, heldBy, untilMs]).toEqual(['wait', ['guard'], EIGHT + 86_400_000]);
    }
    expect(plan([aGuard()], { said: verdict('healthy') })).toMatchObject({ verdict: 'act', heldBy: [] });
  });

  it('says which guard, and what it said', () => {
    const messages = plan([aGuard()], { said: verdict('bad') }).reasons.map(({ message }) => message);
    expect(messages).toContain('guard latency is bad: said so; waiting until it is healthy');
  });

  it('holds nothing but that: no raise, no sleeping compute, no timeout', () => {
    const said = verdict('bad');
    const small = aCompute({ minCu: 0.25, maxCu: 1 });
    expect(plan([aGuard()], { said, compute: small, nowMs: EIGHT }).verdict).toBe('act');
    expect(plan([aGuard()], { said, compute: { ...large, state: 'idle' } }).verdict).toBe('act');
    const longer = aCompute({ minCu: 0.25, maxCu: 1, suspendTimeoutSeconds: -1 });
    expect(plan([aGuard()], { said, compute: longer }).verdict).toBe('act');
  });

  it('asks only the enforcing guards that select the compute', () => {
    const said = verdict('bad');
    expect(plan([aGuard({ mode: 'observe' })], { said }).verdict).toBe('act');
    const elsewhere = { ...aGuard().select, computes: ['ep-other'] };
    expect(plan([aGuard({ select: elsewhere })], { said }).verdict).toBe('act');
    expect(plan([], { said }).verdict).toBe('act');
  });

  it('gives way to a hold, and to a hard limit', () => {
    const said = verdict('bad');
    const hold = aHold({ size: { minCu: 0.25, maxCu: 1 } });
    expect(plan([aGuard()], { said, holds: [hold] }).verdict).toBe('act');
    expect(plan([aGuard(), aLimits({ size: { maxCu: 1 }, hard: true })], { said }).verdict).toBe('act');
  });
});

describe('the guards of a lowering', () => {
  const guardsOf = (others: Policy[], options: Parameters<typeof plan>[1]) => plan(others, options).guards;
  const undo = aGuard({ name: 'errors', remedy: 'undo_with_restart' });

  it('are named with what they said, and with what they would do, where the lowering would restart the compute', () => {
    const said = { ...verdict('healthy'), atMs: SIX - 12_000 };
    expect(guardsOf([aGuard(), undo], { said })).toEqual([
      { policy: 'latency', remedy: 'notify', isAskedFirst: true, lowersSize: true, verdict: said },
      { policy: 'errors', remedy: 'undo_with_restart', isAskedFirst: true, lowersSize: true, verdict: said },
    ]);
    expect(guardsOf([aGuard()], { said: undefined })).toMatchObject([
      { isAskedFirst: true, verdict: { state: 'unknown' } },
    ]);
  });

  it('are named where they only watch it: of a sleeping compute, a timeout, a hard limit', () => {
    const onlyWatches = [{ policy: 'latency', isAskedFirst: false }];
    const asleep = { ...large, state: 'idle' } as const;
    expect(guardsOf([aGuard()], { compute: asleep })).toMatchObject(onlyWatches);
    const never = aCompute({ minCu: 0.25, maxCu: 1, suspendTimeoutSeconds: -1 });
    expect(guardsOf([aGuard()], { compute: never })).toMatchObject(onlyWatches);
    const hard = aLimits({ size: { maxCu: 1 }, hard: true });
    expect(guardsOf([aGuard(), hard], {})).toMatchObject(onlyWatches);
  });

  it('are none of a raise, of what people want, and of what is only observed', () => {
    const small = aCompute({ minCu: 0.25, maxCu: 1 });
    expect(guardsOf([aGuard()], { compute: small, nowMs: EIGHT })).toBeUndefined();
    const holds = [aHold({ size: { minCu: 0.25, maxCu: 1 } })];
    expect(guardsOf([aGuard()], { holds })).toBeUndefined();
    expect(guardsOf([aGuard({ mode: 'observe' })], {})).toBeUndefined();
    const observing = { ...aSchedule({ disruption }), mode: 'observe' } as const;
    const only = planFor({ policies: compiled(observing, aGuard()), compute: large, record: aRecord(), nowMs: SIX });
    expect(only.guards).toBeUndefined();
  });
});
