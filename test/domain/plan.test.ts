import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ComputeState } from '../../src/domain/compute/compute.ts';
import { COMPUTE_SIZES_CU } from '../../src/domain/compute/compute-units.ts';
import { aCompute, aHold, aRecord, aSchedule, at, compiled, planFor } from '../support/builders.ts';

const NOON = at('2026-03-02T12:00:00Z');
const NIGHT = at('2026-03-02T23:00:00Z');
const policies = compiled(aSchedule());
const codes = (plan: ReturnType<typeof planFor>) => plan.reasons.map(({ code }) => code);

describe('plan', () => {
  it('puts all fields that differ into one PATCH, with a reason for each', () => {
    const plan = planFor({
      policies,
      compute: aCompute({ suspendTimeoutSeconds: -1 }),
      record: aRecord(),
      nowMs: NIGHT,
    });
    expect(plan).toMatchObject({
      verdict: 'act',
      actions: [{ fields: { minCu: 0.25, maxCu: 1, suspendTimeoutSeconds: 300 }, disconnects: true, raises: false }],
    });
    expect(codes(plan)).toEqual(['otherwise', 'otherwise']);
  });

  it('sends size and timeout apart once both together were refused', () => {
    const record = aRecord({ oneFieldGroupAtATime: true });
    const compute = aCompute({ suspendTimeoutSeconds: -1 });
    expect(planFor({ policies, compute, record, nowMs: NIGHT }).actions).toMatchObject([
      { fields: { minCu: 0.25, maxCu: 1 } },
    ]);
    const sized = { ...compute, minCu: 0.25, maxCu: 1 };
    expect(planFor({ policies, compute: sized, record, nowMs: NIGHT }).actions).toMatchObject([
      { fields: { suspendTimeoutSeconds: 300 } },
    ]);
  });

  it('gives the reason of what is done first, then of what waits', () => {
    const record = aRecord({ lastApplied: {}, enforcedSinceMs: NOON });
    const plan = planFor({ policies, compute: aCompute({ suspendTimeoutSeconds: -1 }), record, nowMs: NOON });
    expect(plan.reasons[0]?.message).toContain('suspend_after never → 5m');
    expect(plan.heldBy).toEqual(['newly_discovered']);
  });

  it('does nothing where nothing differs', () => {
    const compute = aCompute({ minCu: 0.25, maxCu: 1 });
    expect(planFor({ policies, compute, record: aRecord(), nowMs: NIGHT })).toMatchObject({
      verdict: 'none',
      actions: [],
    });
  });

  it('writes nothing in observe mode, and says what it would do', () => {
    const plan = planFor({ policies, compute: aCompute(), record: aRecord(), nowMs: NOON, mode: 'observe' });
    expect(plan).toMatchObject({ verdict: 'wait', actions: [{ fields: { minCu: 1, maxCu: 4 } }] });
    expect(codes(plan)).toContain('observe');
  });

  it('waits while an operation of the compute or of its project is under way', () => {
    const busy = [
      { compute: aCompute({ pendingState: 'idle' }), record: aRecord() },
      { compute: aCompute({ state: 'init', pendingState: 'active' }), record: aRecord() },
      {
        compute: aCompute(),
        record: aRecord({ openOperations: [{ operationId: 'op', action: 'apply_config', startedAtMs: NOON }] }),
      },
      { compute: aCompute(), record: aRecord(), projectBusy: true },
    ];
    for (const situation of busy) {
      const plan = planFor({ policies, nowMs: NOON, ...situation });
      expect(plan.verdict).toBe('wait');
      expect(codes(plan)).toContain('operation_running');
    }
  });

  describe('of a newly discovered compute', () => {
    const record = aRecord({ lastApplied: {}, enforcedSinceMs: NOON });

    it('does not disconnect an active compute before its next boundary', () => {
      const plan = planFor({ policies, compute: aCompute(), record, nowMs: NOON + 1000 });
      expect(plan).toMatchObject({ verdict: 'wait', untilMs: at('2026-03-02T18:00:00Z') });
      expect(codes(plan)).toContain('newly_discovered');
    });

    it('does not count a hold of another value as a boundary', () => {
      const holds = [aHold({ suspendTimeoutSeconds: 1_200, createdAtMs: NOON + 500, expiresAtMs: NOON + 3_600_000 })];
      const plan = planFor({ policies, compute: aCompute(), record, nowMs: NOON + 1000, holds });
      expect(plan).toMatchObject({ heldBy: ['newly_discovered'], untilMs: at('2026-03-02T18:00:00Z') });
      expect(plan.actions).toMatchObject([{ fields: { suspendTimeoutSeconds: 1_200 }, disconnects: false }]);
    });

    it('does what a person holds at once', () => {
      const holds = [aHold({ size: { minCu: 4, maxCu: 8 }, createdAtMs: NOON + 500, expiresAtMs: NOON + 3_600_000 })];
      const plan = planFor({ policies, compute: aCompute(), record, nowMs: NOON + 1000, holds });
      expect(plan).toMatchObject({ verdict: 'act', actions: [{ fields: { minCu: 4, maxCu: 8 }, disconnects: true }] });
    });

    it('changes a compute that sleeps, and a timeout, at once', () => {
      expect(planFor({ policies, compute: aCompute({ state: 'idle' }), record, nowMs: NOON }).verdict).toBe('act');
      const awake = planFor({ policies, compute: aCompute({ suspendTimeoutSeconds: -1 }), record, nowMs: NOON });
      expect(awake).toMatchObject({
        verdict: 'act',
        actions: [{ fields: { suspendTimeoutSeconds: 300 }, disconnects: false }],
      });
    });

    it('ends with the boundary; from then on the change waits for its own moment', () => {
      const six = at('2026-03-02T18:00:00Z');
      const situation = { policies, compute: aCompute(), record };
      expect(planFor({ ...situation, nowMs: six })).toMatchObject({
        heldBy: ['waiting_for_idle'],
        untilMs: six + 2 * 3_600_000,
      });
      expect(planFor({ ...situation, nowMs: six + 2 * 3_600_000 }).verdict).toBe('act');
    });
  });

  it('holds everything back while a change has no answer', () => {
    const record = aRecord({ intent: { fields: { minCu: 1, maxCu: 4 }, atMs: NOON } });
    const plan = planFor({ policies, compute: aCompute(), record, nowMs: NOON + 1000 });
    expect(plan).toMatchObject({ verdict: 'wait', untilMs: NOON + 20_000 });
    expect(codes(plan)).toContain('answer_unknown');
  });

  it('waits longer after each failure of the same desired value, and not at all for another', () => {
    const failed = (count: number) =>
      aRecord({ failures: { size: { count, lastAtMs: NOON, desired: { minCu: 1, maxCu: 4 }, message: 'no' } } });
    const untilAfter = (count: number) => {
      const { untilMs } = planFor({ policies, compute: aCompute(), record: failed(count), nowMs: NOON });
      return (untilMs ?? 0) - NOON;
    };
    expect([1, 2, 3].map(untilAfter)).toEqual([20_000, 40_000, 3_600_000]);
    expect(codes(planFor({ policies, compute: aCompute(), record: failed(3), nowMs: NOON }))).toContain('degraded');
    expect(planFor({ policies, compute: aCompute(), record: failed(3), nowMs: NIGHT }).verdict).toBe('act');
  });

  it('has nothing more to do once its actions are applied', () => {
    const size = fc.constantFrom(...COMPUTE_SIZES_CU).map((cu) => ({ minCu: cu, maxCu: cu }));
    const state = fc.constantFrom<ComputeState>('active', 'idle');
    fc.assert(
      fc.property(
        size,
        size,
        state,
        fc.integer({ min: NOON, max: NOON + 7 * 86_400_000 }),
        (has, wants, now, nowMs) => {
          const wanting = compiled(aSchedule({ otherwise: { size: wants, suspendTimeoutSeconds: 600 } }));
          const compute = aCompute({ ...has, state: now });
          const before = planFor({ policies: wanting, compute, record: aRecord(), nowMs });
          if (before.verdict !== 'act') return;
          const changed = { ...compute, ...before.actions[0]?.fields };
          expect(planFor({ policies: wanting, compute: changed, record: aRecord(), nowMs }).verdict).not.toBe('act');
        },
      ),
    );
  });
});
