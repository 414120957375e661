import { describe, expect, it } from 'vitest';
import type { AccountFacts } from '../../../src/domain/compute/account-facts.ts';
import type { Compute } from '../../../src/domain/compute/compute.ts';
import { nextBoundary } from '../../../src/domain/decide/boundaries.ts';
import { decide } from '../../../src/domain/decide/decide.ts';
import { evaluateNow } from '../../../src/domain/evaluate/evaluate.ts';
import { forecast } from '../../../src/domain/forecast/forecast.ts';
import { gatesOf } from '../../../src/domain/plan/plan.ts';
import { withBudgetSteps } from '../../../src/domain/policy/compiled-policies.ts';
import type { Policy } from '../../../src/domain/policy/policy.ts';
import { STEP_END_SPREAD_MS, type StepSpan } from '../../../src/domain/spend/terms.ts';
import {
  aBudget,
  aCompute,
  aHold,
  aLimits,
  aRecord,
  aSchedule,
  aStepSpan,
  at,
  compiled,
} from '../../support/builders.ts';

const BEGIN = at('2026-03-20T10:00:00Z');
const MONTH_END = at('2026-04-01T00:00:00Z');
const always = aSchedule({ windows: [], otherwise: { size: { minCu: 2, maxCu: 4 }, suspendTimeoutSeconds: 3600 } });
const under = (spans: StepSpan[], ...policies: Policy[]) => withBudgetSteps(compiled(...policies), spans);
const wanted = (policies = under([aStepSpan()], always, aBudget()), instantMs = BEGIN, compute = aCompute()) =>
  decide({ policies, compute, baseline: undefined, instantMs }).enforced;
const SCHEDULED = { size: { minCu: 2, maxCu: 4 }, suspendTimeoutSeconds: 3600 };
const LIMITED = { size: { minCu: 1, maxCu: 1 }, suspendTimeoutSeconds: 300 };

describe('a step of a budget that is reached', () => {
  it('limits what schedules and soft limits give, from its begin on', () => {
    expect(wanted(undefined, BEGIN - 1)).toEqual(SCHEDULED);
    expect(wanted()).toEqual(LIMITED);
    const besides = under([aStepSpan()], always, aLimits({ size: { minCu: 2 } }), aBudget());
    expect(wanted(besides)).toEqual(LIMITED);
    const { trace } = decide({ policies: besides, compute: aCompute(), baseline: undefined, instantMs: BEGIN });
    expect(trace.find(({ code }) => code === 'budget_step')).toMatchObject({
      ...{ policy: { name: 'budget' }, budgetStep: { at: 1, of: 'spent' } },
    });
  });

  it('yields to hard limits and holds', () => {
    const hard = under([aStepSpan()], always, aBudget(), aLimits({ hard: true, size: { minCu: 2, maxCu: 2 } }));
    expect(wanted(hard).size).toEqual({ minCu: 2, maxCu: 2 });
    const input = { policies: under([aStepSpan()], always, aBudget()), compute: aCompute(), baseline: undefined };
    const held = decide({ ...input, instantMs: BEGIN, holds: [aHold({ size: { minCu: 4, maxCu: 4 } })] });
    expect(held.enforced.size).toEqual({ minCu: 4, maxCu: 4 });
  });

  it('counts for its own budget, account and step alone', () => {
    for (const other of [{ policy: 'other' }, { account: 'other' }, { at: 0.7 }] satisfies Partial<StepSpan>[]) {
      expect(wanted(under([aStepSpan(other)], always, aBudget()))).toEqual(SCHEDULED);
    }
    const notify = { at: 0.8, of: 'projected' } as const;
    expect(wanted(under([aStepSpan(notify)], always, aBudget()))).toEqual(SCHEDULED);
  });

  it('leaves out default and protected branches, and those of unknown roles, unless they are included', () => {
    const policies = under([aStepSpan()], always, aBudget({ includeProtected: false }));
    const on = (branchRoles?: Compute['branchRoles']) => aCompute(branchRoles && { branchRoles });
    for (const roles of [['default'], ['protected'], undefined] as const) {
      expect(wanted(policies, BEGIN, on(roles && [...roles]))).toEqual(SCHEDULED);
      expect(wanted(undefined, BEGIN, on(roles && [...roles]))).toEqual(LIMITED);
    }
    expect(wanted(policies, BEGIN, on(['child']))).toEqual(LIMITED);
    expect(policies.selectsByBranch).toBe(true);
  });

  it('is only shown where the budget observes', () => {
    const policies = under([aStepSpan()], always, aBudget({ mode: 'observe' }));
    const decision = decide({ policies, compute: aCompute(), baseline: undefined, instantMs: BEGIN });
    expect([decision.desired, decision.enforced]).toEqual([LIMITED, SCHEDULED]);
  });

  it('ends for each compute at an instant of its own, within six hours of the end of the month', () => {
    const policies = under([aStepSpan()], always, aBudget());
    const ends = Array.from({ length: 50 }, (_, index) => {
      const compute = aCompute({ computeId: `ep-${index}` });
      const input = { policies, compute, baseline: undefined };
      const endMs = nextBoundary(input, BEGIN) ?? 0;
      expect(wanted(policies, endMs - 1, compute)).toEqual(LIMITED);
      expect(wanted(policies, endMs, compute)).toEqual(SCHEDULED);
      const [last] = forecast({ ...input, fromMs: BEGIN, toMs: MONTH_END + STEP_END_SPREAD_MS }).segments.slice(-1);
      expect(last).toMatchObject({ fromMs: endMs, minCu: 2, maxCu: 4 });
      return (endMs - MONTH_END) / STEP_END_SPREAD_MS;
    });
    expect(Math.min(...ends)).toBeGreaterThanOrEqual(0);
    expect(Math.max(...ends)).toBeLessThan(1);
    expect(new Set(ends.map((share) => Math.floor(6 * share))).size).toBe(6);
  });
});

describe('what a step changes', () => {
  const plan = (
    compute: Compute,
    nowMs: number,
    budget = aBudget(),
    others: Policy[] = [always],
    verified: AccountFacts = {},
  ) => {
    const settings = {
      minCu: compute.minCu,
      maxCu: compute.maxCu,
      suspendTimeoutSeconds: compute.suspendTimeoutSeconds,
    };
    return evaluateNow({
      ...{
        policies: under([aStepSpan()], ...others, budget),
        compute,
        nowMs,
        mode: 'enforce',
        projectBusy: false,
        verified,
      },
      record: aRecord({ lastApplied: settings, baseline: settings, lastDecidedAtMs: 0 }),
    }).plan;
  };
  const awake = aCompute({ minCu: 2, maxCu: 4, suspendTimeoutSeconds: 3600 });
  const asleep = aCompute({ ...awake, state: 'idle' });

  it('is the timeout at once, and the size of sleeping computes only, without a deadline', () => {
    expect(plan(asleep, BEGIN).actions[0]?.fields).toEqual({ minCu: 1, maxCu: 1, suspendTimeoutSeconds: 300 });
    for (const nowMs of [BEGIN, BEGIN + 5 * 86_400_000]) {
      const waiting = plan(awake, nowMs);
      expect(waiting.actions[0]?.fields).toEqual({ suspendTimeoutSeconds: 300 });
      expect(gatesOf(waiting)).toEqual(['waiting_for_idle']);
    }
  });

  it('is made by the rules of the step where it has some', () => {
    const any = { lower: { when: 'any', atDeadline: 'apply' } } as const;
    const steps = aBudget().steps.map((step) => ({ ...step, disruption: any }));
    expect(plan(awake, BEGIN, aBudget({ steps })).actions[0]?.fields).toMatchObject({ minCu: 1, maxCu: 1 });
  });

  it('is never a raise of a schedule that waits longer than without it', () => {
    const small = aCompute({ minCu: 0.25, maxCu: 0.25, suspendTimeoutSeconds: 300 });
    expect(plan(small, BEGIN).actions[0]?.fields).toEqual({ minCu: 1, maxCu: 1 });
  });

  it('goes back when the compute sleeps, or at its next boundary', () => {
    const limited = aCompute({ minCu: 1, maxCu: 1, suspendTimeoutSeconds: 300 });
    const after = MONTH_END + STEP_END_SPREAD_MS;
    const kept = plan(limited, after);
    expect(kept.actions[0]?.fields).toEqual({ suspendTimeoutSeconds: 3600 });
    expect(gatesOf(kept)).toEqual(['budget_reset']);
    expect(plan({ ...limited, state: 'idle' }, after).actions[0]?.fields).toMatchObject({ minCu: 2, maxCu: 4 });
    const office = aSchedule({ otherwise: { size: { minCu: 0.25, maxCu: 2 } } });
    const eight = at('2026-04-01T08:00:00Z');
    const before = plan({ ...limited, suspendTimeoutSeconds: 3600 }, eight - 1, aBudget(), [office]);
    expect([gatesOf(before), before.untilMs]).toEqual([['budget_reset'], eight]);
    const restarting = plan(limited, after, aBudget(), [always], { timeout_change: 'restarts' });
    expect([restarting.verdict, gatesOf(restarting)]).toEqual(['wait', ['budget_reset', 'budget_reset']]);
    const then = plan({ ...limited, suspendTimeoutSeconds: 3600 }, eight, aBudget(), [office]);
    expect(then.actions[0]?.fields).toEqual({ minCu: 1, maxCu: 4 });
  });
});
