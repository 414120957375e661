/** What people see of guards in `ebb plan` and `ebb explain`. */
import { createColors } from 'picocolors';
import { describe, expect, it } from 'vitest';
import { describeExplanation, explanationJson } from '../../src/cli/explain/describe-explanation.ts';
import { describePlan, guardLines } from '../../src/cli/plan/describe-plan.ts';
import type { EvaluatedCompute } from '../../src/domain/evaluate/evaluate.ts';
import { fleetPlanJson } from '../../src/domain/evaluate/fleet-plan-json.ts';
import { planFleet } from '../../src/domain/evaluate/plan-fleet.ts';
import { guardKey } from '../../src/domain/guards/state.ts';
import { termsDigest } from '../../src/domain/policy/policy-set.ts';
import { MONDAY_NINE } from '../cli/fleet-files.ts';
import { aCompute, aGuard, aRecord, aSchedule, at, compiled } from '../support/builders.ts';

const plain = { colors: createColors(false), zone: 'UTC' };
const situation = {
  ...{ mode: 'enforce' as const, profiles: new Map() },
  ...{ disruption: undefined, manualChanges: undefined },
};

describe('ebb plan', () => {
  it('names the guards of lowerings, what they said and how long ago, and what an undo costs', () => {
    const nowMs = at('2026-03-02T20:00:00Z');
    const guards = [aGuard({ remedy: 'undo_with_restart' }), aGuard({ name: 'errors', remedy: 'undo' })];
    const policies = compiled(aSchedule({ disruption: { lower: { when: 'any', atDeadline: 'apply' } } }), ...guards);
    const computes = [
      aCompute({ computeId: 'ep-awake', minCu: 4, maxCu: 8 }),
      aCompute({ computeId: 'ep-asleep', minCu: 2, maxCu: 8, state: 'idle' }),
    ];
    const records = new Map(computes.map(({ computeId }) => [computeId, aRecord({ lastApplied: {} })]));
    const verdict = { state: 'healthy', value: 0.1, limit: 0.4, message: '0.1, bad above 0.4' } as const;
    const states = guards.map((guard) => ({
      ...{ guard: guard.name, key: guardKey(guard), verdict },
      atMs: nowMs - (guard.name === 'errors' ? 600_000 : 12_000),
    }));
    const guardStates = new Map([['ep-awake', states]]);
    const fleet = planFleet({ ...situation, policies, computes, records, nowMs, guardStates });
    const text = describePlan(fleet, plain);
    const undo = 'an undo of the size restarts it and drops its connections';
    const later = 'an undo of the size waits until it next sleeps';
    expect(text).toContain(`guard latency is asked first: healthy, 12 s ago; ${undo}`);
    expect(text).toContain(`guard errors is asked first: unknown, 10 min ago; ${later}`);
    expect(text).toContain(
      'guard errors is unknown: not asked since Mon 2 Mar 2026, 19:50, when it was healthy: 0.1, bad above 0.4; waiting until it is healthy',
    );
    expect(text).toContain(`guard latency watches it afterwards; ${undo}`);
    const [asleep, awake] = fleetPlanJson(fleet).computes;
    expect(asleep?.guards).toEqual([
      { guard: 'latency', remedy: 'undo_with_restart', asked_first: false },
      { guard: 'errors', remedy: 'undo', asked_first: false },
    ]);
    expect(awake?.guards?.[0]).toEqual({
      ...{ guard: 'latency', remedy: 'undo_with_restart', asked_first: true },
      verdict: { state: 'healthy', value: 0.1, limit: 0.4, message: '0.1, bad above 0.4', at: '2026-03-02T19:59:48Z' },
    });
    const only = planFleet({
      ...situation,
      policies: compiled(policies.set.policies[0] as never, guards[0] as never),
      computes,
      records,
      nowMs,
      guardStates,
    });
    expect(only.computes.map(({ plan }) => plan.verdict)).toEqual(['act', 'act']);
  });
});

it('tells what an undo of the size costs where only the timeout changes now', () => {
  const guard = { policy: 'latency', remedy: 'undo' as const, verdict: { state: 'healthy' as const, message: '' } };
  const plan = { verdict: 'act' as const, why: [], waiting: [], actions: [] };
  const lines = (lowersSize: boolean) =>
    guardLines({ ...plan, guards: [{ ...guard, isAskedFirst: false, lowersSize }] }, 0);
  expect(lines(true)).toEqual(['guard latency watches it afterwards; an undo of the size waits until it next sleeps']);
  expect(lines(false)).toEqual(['guard latency watches it afterwards']);
});

describe('ebb explain', () => {
  it('shows what guards say, what they watch, and how a floor ends', () => {
    const guard = aGuard({ remedy: 'undo_with_restart', retryMs: 7 * 86_400_000 });
    const sinceMs = at('2026-03-01T18:05:00Z');
    const fields = { minCu: 2, maxCu: 8 };
    const lowered = { minCu: 1, maxCu: 4 };
    const schedule = aSchedule();
    const floor = {
      ...{ guard: 'latency', sinceMs, fields, lowered },
      policy: schedule.name,
      terms: termsDigest(schedule),
    };
    const found = {
      guard: 'latency',
      loweredAtMs: sinceMs - 300_000,
      badSinceMs: sinceMs - 180_000,
      foundAtMs: sinceMs,
    };
    const record = aRecord({
      floors: { size: floor },
      guardFinding: { ...found, from: fields, to: lowered, remedy: 'undo_with_restart' },
    });
    const policies = compiled(schedule, guard);
    const nowMs = at(MONDAY_NINE);
    const verdict = { state: 'bad', value: 0.5, limit: 0.4, message: '0.5, bad above 0.4' } as const;
    const watch = { loweredAtMs: nowMs - 600_000, sampledMs: 480_000, blindMs: 60_000, badSinceMs: nowMs - 60_000 };
    const states = [{ guard: 'latency', key: guardKey(guard), atMs: nowMs - 12_000, verdict, watch }];
    const { computes, atMs } = planFleet({
      ...{
        policies,
        computes: [aCompute({ minCu: 1, maxCu: 4 })],
        records: new Map([['ep-one', record]]),
        mode: 'enforce',
        nowMs,
      },
      ...{ profiles: new Map(), disruption: undefined, manualChanges: undefined },
      guardStates: new Map([['ep-one', states]]),
    });
    const explanation = { atMs, planned: computes[0] as EvaluatedCompute, guards: { policies, states, atMs } };
    const text = describeExplanation(explanation, plain.colors);
    expect(text).toContain(`
Guards
  latency  bad: 0.5, bad above 0.4 (12 s ago)
  watched   by latency since 2026-03-02T08:50:00Z, 8 min of 30 min sampled, 1 min awake without samples, bad since 2026-03-02T08:59:00Z
  found     ep-one: guard latency was bad since 2026-03-01T18:02:00Z, after size 2-8 → 1-4 CU at 2026-03-01T18:00:00Z; the size was to go back at once, with a restart
  floor     size 1-4 → 2-8 CU since 2026-03-01T18:05:00Z, by guard latency, which was bad after office-hours had lowered it; until 2026-03-08T18:05:00Z, or office-hours changes
  to lower it again now: ebb release ep-one --guard
`);
    expect(explanationJson(explanation)).toMatchObject({
      guards: [
        {
          ...{
            guard: 'latency',
            asked_first: false,
            verdict: { state: 'bad', value: 0.5, at: '2026-03-02T08:59:48Z' },
          },
          watch: { sampled_seconds: 480, blind_seconds: 60, bad_since: '2026-03-02T08:59:00Z', common_cause: false },
        },
      ],
      guard_finding: { bad_since: '2026-03-01T18:02:00Z' },
      floors: [{ field: 'size', in_effect: true, until: '2026-03-08T18:05:00Z', at_least: { min_cu: 2, max_cu: 8 } }],
    });
  });
});
