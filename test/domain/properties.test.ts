import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Compute, ComputeSettings, Desired, Size } from '../../src/domain/compute/compute.ts';
import { COMPUTE_SIZES_CU } from '../../src/domain/compute/compute-units.ts';
import { CONNECTION_PROFILES } from '../../src/domain/connections/connection-profile.ts';
import { isBoundary, lastBoundary, searchBoundary } from '../../src/domain/decide/boundaries.ts';
import { type DecideInput, type Decision, decide } from '../../src/domain/decide/decide.ts';
import { type Evaluation, evaluate, type Situation } from '../../src/domain/evaluate/evaluate.ts';
import { withWanted } from '../../src/domain/evaluate/wanted-since.ts';
import { withoutMark } from '../../src/domain/plan/manual-changes.ts';
import { gatesOf, type Plan } from '../../src/domain/plan/plan.ts';
import { withBudgetSteps } from '../../src/domain/policy/compiled-policies.ts';
import type { Bounds } from '../../src/domain/policy/directive.ts';
import type { HeadroomPolicy } from '../../src/domain/policy/kinds/headroom.ts';
import type { Policy } from '../../src/domain/policy/policy.ts';
import { aRecord, at, compiled } from '../support/builders.ts';
import {
  baselines,
  computes,
  connectionHistories,
  holdLists,
  policySets,
  profiles,
  sizes,
  stepSpans,
} from './arbitraries.ts';

/** Policy sets for each property; EBB_PROPERTY_RUNS=2000 for a long run. */
const RUNS = Number(process.env.EBB_PROPERTY_RUNS ?? 8) * 10;
const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const DAYS = 6;
/** Berlin's clocks go forward on 2026-03-29. */
const FROM = at('2026-03-26T00:00:00Z');
const AROUND = { zone: 'Europe/Berlin', fromMs: FROM, days: DAYS };
const NOW = FROM + 3 * DAY_MS;

const instants = fc.integer({ min: 0, max: DAYS * 1440 }).map((minutes) => FROM + minutes * MINUTE_MS);

interface Given {
  policies: Policy[];
  compute: Compute;
  baseline: ComputeSettings | undefined;
  input: DecideInput;
}

function situations({ mayConflict = true, once = false } = {}): fc.Arbitrary<Given> {
  const parts = [
    policySets({ ...AROUND, once }, { mayConflict }),
    computes,
    baselines,
    connectionHistories(NOW),
    holdLists(NOW),
    profiles,
    stepSpans(AROUND),
  ] as const;
  return fc.tuple(...parts).map(([policies, compute, baseline, connections, holds, profile, spans]) => ({
    policies,
    compute,
    baseline,
    input: {
      ...{ policies: withBudgetSteps(compiled(...policies), spans), compute, baseline },
      ...{ connections, holds, profile, instantMs: NOW },
    },
  }));
}

function isPlatformSize({ minCu, maxCu }: Size): boolean {
  if (!COMPUTE_SIZES_CU.includes(minCu) || !COMPUTE_SIZES_CU.includes(maxCu)) return false;
  return minCu === maxCu || (minCu < maxCu && maxCu <= 16 && maxCu - minCu <= 8);
}

function expectPossible({ size, suspendTimeoutSeconds: timeout }: Desired, compute: Compute): void {
  if (size) expect(isPlatformSize(size)).toBe(true);
  expect(timeout === null || timeout === -1 || (timeout >= 60 && timeout <= 604_800)).toBe(true);
  if (timeout !== null && (size ?? compute).maxCu > 16) expect(timeout).toBe(-1);
}

function expectWithin({ minCu, maxCu }: Size, limits: readonly Bounds[]): void {
  for (const { ranges } of limits) {
    expect(minCu).toBeGreaterThanOrEqual(ranges.size?.low ?? 0);
    expect(maxCu).toBeLessThanOrEqual(ranges.size?.high ?? 56);
  }
}

const hasCode = ({ trace }: Decision, code: string) => trace.some((step) => step.code === code);

describe('a decision', () => {
  it("never leaves the platform's sizes, nor hard limits", () => {
    fc.assert(
      fc.property(situations(), ({ input }) => {
        const decision = decide(input);
        for (const wish of [decision.desired, decision.enforced]) expectPossible(wish, input.compute);
        const { size } = decision.enforced;
        if (size && !hasCode(decision, 'limits_conflict')) expectWithin(size, decision.hardLimits);
      }),
      { numRuns: 3 * RUNS },
    );
  });

  it('covers the connections that are needed, or reports that it does not', () => {
    const needOf = ({ connections: source, targetShare, scaleDownAfterMs }: HeadroomPolicy, { input }: Given) => {
      const samples = (input.connections?.get(source) ?? []).filter(({ atMs }) => atMs <= NOW);
      const isFresh = samples.some(({ atMs }) => NOW - atMs <= 5 * MINUTE_MS);
      if (!isFresh && input.compute.state !== 'idle') return 0;
      const counts = samples.filter(({ atMs }) => NOW - atMs <= scaleDownAfterMs).map(({ connections }) => connections);
      return Math.max(0, ...counts) / targetShare;
    };
    fc.assert(
      fc.property(situations(), (given) => {
        const { policies, baseline, input } = given;
        const decision = decide(input);
        const { maxConnections, reserved } = input.profile ?? CONNECTION_PROFILES.specification;
        for (const policy of policies) {
          if (policy.kind !== 'headroom' || policy.act === 'advise' || policy.select.projects?.includes('x')) continue;
          const usable = maxConnections(decision.desired.size ?? baseline ?? input.compute) - reserved;
          const isReported = decision.trace.some((step) => step.code === 'headroom_unmet' && step.policy === policy);
          expect(usable >= needOf(policy, given) - 1e-6).toBe(!isReported);
        }
      }),
      { numRuns: 3 * RUNS },
    );
  });

  it('does not depend on the order of files, nor on that of policies with different priorities', () => {
    const shuffled = situations({ mayConflict: false }).chain(({ policies, input }) => {
      const ranked = policies.map((policy, priority) => ({ ...policy, priority }));
      return fc.tuple(
        fc.constant(ranked),
        fc.shuffledSubarray(ranked, { minLength: ranked.length }),
        fc.constant(input),
      );
    });
    fc.assert(
      fc.property(shuffled, ([ranked, other, input]) => {
        const result = (policies: Policy[]) => {
          const { desired, enforced, urgent, restart } = decide({ ...input, policies: compiled(...policies) });
          return { desired, enforced, urgent, restart: restart?.policy.name };
        };
        expect(result(other)).toEqual(result(ranked));
      }),
      { numRuns: 2 * RUNS },
    );
  });
});

describe('boundaries', () => {
  const wish = (input: DecideInput, instantMs: number) => {
    const { desired, enforced, restart } = decide({ ...input, connections: undefined, instantMs });
    return { desired, enforced, restart: restart && [restart.policy.name, restart.openSinceMs] };
  };

  it('separate spans in which the decision is constant, and it changes at each', () => {
    fc.assert(
      fc.property(
        situations({ once: true }),
        fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 5 }),
        ({ input }, shares) => {
          let fromMs = FROM;
          for (let step = 0; step < 6; step += 1) {
            const { boundaryMs: foundMs, searchedUntilMs } = searchBoundary(input, fromMs);
            const toMs = foundMs ?? searchedUntilMs ?? fromMs + 40 * DAY_MS;
            const wanted = wish(input, fromMs);
            const within = [...shares.map((share) => Math.floor(fromMs + share * (toMs - 1 - fromMs))), toMs - 1];
            for (const instantMs of within) expect(wish(input, instantMs)).toEqual(wanted);
            if (foundMs === undefined) return;
            expect(wish(input, foundMs)).not.toEqual(wanted);
            expect(isBoundary(input, foundMs)).toBe(true);
            fromMs = foundMs;
          }
        },
      ),
      { numRuns: RUNS },
    );
  });

  it('are the same forwards and backwards, for each group of fields', () => {
    fc.assert(
      fc.property(
        situations({ once: true }),
        fc.constantFrom('size' as const, 'suspend_timeout' as const),
        instants,
        ({ input }, group, instantMs) => {
          const { boundaryMs: nextMs, searchedUntilMs } = searchBoundary(input, instantMs, group);
          const lastMs = lastBoundary(input, instantMs, group);
          // A search that ended before it found anything says nothing of what is behind its end.
          if (lastMs === undefined || searchedUntilMs !== undefined) return;
          expect(lastMs).toBeLessThanOrEqual(instantMs);
          if (Number.isFinite(lastMs)) {
            expect(searchBoundary(input, lastMs - 1, group).boundaryMs).toBe(lastMs);
            const after = searchBoundary(input, lastMs, group);
            if (after.searchedUntilMs === undefined) expect(after.boundaryMs).toBe(nextMs);
          }
          if (nextMs === undefined || nextMs - instantMs > 30 * DAY_MS) return;
          expect(lastBoundary(input, nextMs, group)).toBe(nextMs);
          expect([lastMs, undefined]).toContain(lastBoundary(input, nextMs - 1, group));
        },
      ),
      { numRuns: RUNS },
    );
  });
});

describe('a plan', () => {
  /** What the control API and the record are after the actions of a plan. */
  function applied(situation: Situation, { actions }: Plan): Situation {
    const { nowMs, record = aRecord() } = situation;
    let { compute } = situation;
    let after = record;
    for (const { fields, disconnects, raises } of actions) {
      compute = { ...compute, ...fields, ...(disconnects && { startedAtMs: nowMs }) };
      after = { ...after, lastApplied: { ...after.lastApplied, ...fields } };
      if (disconnects) after = { ...after, lastDisruption: { atMs: nowMs, lowered: !raises } };
      if (fields.maxCu !== undefined) after = withoutMark(after, 'size');
      if (fields.suspendTimeoutSeconds !== undefined) after = withoutMark(after, 'suspend_timeout');
    }
    return { ...situation, compute, record: after };
  }

  const plans = fc
    .tuple(situations({ once: true }), fc.boolean(), fc.option(sizes))
    .map(([{ input, baseline }, isMet, changed]): Situation => {
      const { policies, compute, connections, holds, profile } = input;
      const fields = changed ?? compute;
      const mark = { fields: { minCu: fields.minCu, maxCu: fields.maxCu }, seenAtMs: NOW - 3_600_000, raises: true };
      const record = aRecord({
        ...(baseline && { baseline }),
        lastApplied: isMet ? { minCu: 2, maxCu: 2 } : {},
        enforcedSinceMs: NOW,
        ...(changed && { manual: { size: mark } }),
      });
      return {
        ...{ policies, compute: { ...compute, ...changed }, record, nowMs: NOW, mode: 'enforce', projectBusy: false },
        ...(connections && { connections }),
        ...(holds && { holds }),
        ...(profile && { profile }),
      };
    });

  it('asks for nothing more once it is applied', () => {
    fc.assert(
      fc.property(plans, (situation) => {
        const { plan } = evaluate(situation);
        if (plan.verdict !== 'act') return;
        expect(evaluate(applied(situation, plan)).plan.verdict).not.toBe('act');
      }),
      { numRuns: 3 * RUNS },
    );
  });

  /** The same a while later, with what a daemon records: at the instant that the plan names, or asleep where it names none. */
  function later(before: Situation, { plan: { untilMs }, decision }: Evaluation): Situation {
    const { record = aRecord() } = before;
    const situation = { ...before, record: withWanted({ ...before, baseline: record.baseline, record, decision }) };
    if (untilMs === undefined) return { ...situation, compute: { ...situation.compute, state: 'idle' } };
    expect(untilMs).toBeGreaterThan(situation.nowMs);
    return { ...situation, nowMs: untilMs };
  }

  const isAtRest = (one: Plan) =>
    one.verdict === 'none' ||
    (one.verdict === 'wait' && gatesOf(one).every((code) => code === 'observe' || code === 'frozen'));

  it('is done after a while: gates open, and then nothing is left', () => {
    fc.assert(
      fc.property(plans, (first) => {
        let situation = first;
        let evaluation = evaluate(situation);
        for (let step = 0; step < 300 && !isAtRest(evaluation.plan); step += 1) {
          const { plan } = evaluation;
          situation = plan.verdict === 'act' ? applied(situation, plan) : later(situation, evaluation);
          evaluation = evaluate(situation);
        }
        expect(isAtRest(evaluation.plan)).toBe(true);
      }),
      { numRuns: RUNS },
    );
  });
});
