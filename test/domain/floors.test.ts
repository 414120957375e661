/** What a guard has taken back is not lowered again, and nothing else is changed by that. */
import { describe, expect, it } from 'vitest';
import { nextBoundary } from '../../src/domain/decide/boundaries.ts';
import { decide } from '../../src/domain/decide/decide.ts';
import { floorsInEffect } from '../../src/domain/decide/stages/floors.ts';
import { describeStep } from '../../src/domain/decide/trace.ts';
import { evaluate } from '../../src/domain/evaluate/evaluate.ts';
import { obstacleToUndo } from '../../src/domain/notifications/of-record.ts';
import type { Policy } from '../../src/domain/policy/policy.ts';
import { termsDigest } from '../../src/domain/policy/policy-set.ts';
import type { Floor, Floors } from '../../src/domain/records/compute-record.ts';
import { loweringOf, withFinding, withoutFloors } from '../../src/domain/records/lowerings.ts';
import {
  aCompute,
  aFreeze,
  aGuard,
  aHold,
  aLimits,
  aRecord,
  aSchedule,
  at,
  aWindow,
  compiled,
  planFor,
} from '../support/builders.ts';

const DAY_MS = 86_400_000;
const NOON = at('2026-03-02T12:00:00Z');
const SEVEN = at('2026-03-02T19:00:00Z');
const NEXT_EIGHT = at('2026-03-03T08:00:00Z');
const LARGE = { minCu: 1, maxCu: 4 };
const SMALL = { minCu: 0.25, maxCu: 1 };
const schedule = aSchedule({
  windows: [{ at: [aWindow()], size: LARGE }],
  otherwise: { size: SMALL, suspendTimeoutSeconds: 60 },
  disruption: { lower: { when: 'any', atDeadline: 'apply' } },
});
const undo = aGuard({ remedy: 'undo' });

const floor = (more: Partial<Floor> = {}): Floor => ({
  ...{ guard: 'latency', sinceMs: SEVEN - 60_000, fields: LARGE, lowered: SMALL },
  ...{ policy: schedule.name, terms: termsDigest(schedule) },
  ...more,
});
const small = aCompute({ ...SMALL, suspendTimeoutSeconds: 60 });

interface Case {
  policies?: Policy[];
  floors?: Floors;
  nowMs?: number;
  compute?: typeof small;
}

const given = ({
  policies = [schedule, undo],
  floors = { size: floor() },
  nowMs = SEVEN,
  compute = small,
}: Case = {}) => ({
  policies: compiled(...policies),
  compute,
  nowMs,
  record: aRecord({ floors, lastApplied: { ...SMALL, suspendTimeoutSeconds: 60 } }),
});
const wanted = (one: Case = {}) => {
  const { policies, compute, nowMs, record } = given(one);
  return decide({ policies, compute, baseline: record.baseline, floors: record.floors, instantMs: nowMs }).enforced;
};

describe('a floor', () => {
  it('keeps the size that the compute had before, and says who did that', () => {
    expect(wanted().size).toEqual(LARGE);
    const { trace } = decide({ ...given(), baseline: undefined, floors: { size: floor() }, instantMs: SEVEN });
    const step = trace.find(({ code }) => code === 'guard_floor');
    expect(step && describeStep(step)).toBe(
      'guard latency took a lowering by office-hours back at 2026-03-02T18:59:00Z (0.25-1 CU → 1-4 CU)',
    );
  });

  it('keeps the larger end of each, and the longer timeout', () => {
    expect(wanted({ floors: { size: floor({ fields: { minCu: 0.5, maxCu: 2 } }) } }).size).toEqual({
      minCu: 0.5,
      maxCu: 2,
    });
    const larger = aSchedule({ ...schedule, otherwise: { size: { minCu: 2, maxCu: 2 } } });
    const terms = termsDigest(larger);
    expect(wanted({ policies: [larger, undo], floors: { size: floor({ terms }) } }).size).toEqual({
      minCu: 2,
      maxCu: 4,
    });
    const never = floor({ fields: { suspendTimeoutSeconds: -1 }, lowered: { suspendTimeoutSeconds: 60 } });
    expect(wanted({ floors: { suspend_timeout: never } })).toEqual({ size: SMALL, suspendTimeoutSeconds: -1 });
  });

  it('sets nothing where its policy says nothing any more and the compute has as much', () => {
    const quiet = aSchedule({ windows: [{ at: [aWindow()], size: SMALL }], otherwise: 'leave' });
    const floors = { size: floor({ terms: termsDigest(quiet) }) };
    const large = aCompute({ minCu: 2, maxCu: 8, suspendTimeoutSeconds: -1 });
    expect(wanted({ policies: [quiet, undo], floors, compute: large }).size).toBeNull();
    expect(wanted({ policies: [quiet, undo], floors }).size).toEqual(LARGE);
    const timeout = floor({ terms: termsDigest(quiet), fields: { suspendTimeoutSeconds: 600 } });
    const ofTimeout = { policies: [quiet, undo], floors: { suspend_timeout: timeout } };
    expect(wanted({ ...ofTimeout, compute: large }).suspendTimeoutSeconds).toBeNull();
    expect(wanted(ofTimeout).suspendTimeoutSeconds).toBe(600);
    const one = given({ policies: [quiet, undo], floors, compute: large });
    const { trace } = decide({ ...one, baseline: undefined, floors, instantMs: SEVEN });
    expect(trace.filter(({ code }) => code === 'guard_floor')).toEqual([]);
  });

  it('ends with the terms of the policy, with the guard, with its remedy, and after retry', () => {
    const edited = aSchedule({ ...schedule, priority: 3 });
    const elsewhere = aGuard({ remedy: 'undo', select: { ...undo.select, computes: ['ep-other'] } });
    for (const policies of [[edited, undo], [schedule], [schedule, aGuard()], [schedule, elsewhere], [undo]])
      expect(wanted({ policies }).size ?? SMALL).toEqual(SMALL);
    const retrying = [schedule, aGuard({ remedy: 'undo', retryMs: 7 * DAY_MS })];
    expect(wanted({ policies: retrying, nowMs: SEVEN + 6 * DAY_MS }).size).toEqual(LARGE);
    expect(wanted({ policies: retrying, nowMs: SEVEN + 7 * DAY_MS }).size).toEqual(SMALL);
  });

  it('holds for commands exactly where it holds for decisions', () => {
    const edited = aSchedule({ ...schedule, priority: 3 });
    const sets = [
      [schedule, undo],
      [edited, undo],
      [schedule],
      [schedule, aGuard()],
      [schedule, { ...undo, mode: 'observe' }],
    ];
    const retrying = aGuard({ remedy: 'undo', retryMs: DAY_MS });
    const held = [...sets, [schedule, retrying]].flatMap((policies) =>
      [SEVEN - 120_000, SEVEN, SEVEN + DAY_MS].map((nowMs) => {
        const one = given({ policies: policies as Policy[], nowMs });
        const isHeld = floorsInEffect(one.policies, small, one.record.floors, nowMs).size !== undefined;
        expect(isHeld).toBe(wanted({ policies: policies as Policy[], nowMs }).size?.maxCu === LARGE.maxCu);
        return isHeld;
      }),
    );
    expect(held.filter(Boolean)).toHaveLength(3);
  });

  it('does not hold before it was found; its beginning and its end are boundaries', () => {
    expect(wanted({ nowMs: SEVEN - 120_000 }).size).toEqual(SMALL);
    const retrying = [schedule, aGuard({ remedy: 'undo', retryMs: DAY_MS / 24 })];
    const { policies, compute, record } = given({ policies: retrying });
    const input = { policies, compute, baseline: undefined, floors: record.floors };
    expect(nextBoundary(input, NOON, 'size')).toBe(at('2026-03-02T18:00:00Z'));
    expect(nextBoundary(input, at('2026-03-02T18:00:00Z'), 'size')).toBe(SEVEN - 60_000);
    expect(nextBoundary(input, SEVEN, 'size')).toBe(SEVEN - 60_000 + DAY_MS / 24);
  });

  it('comes after limits, and before headroom, holds and hard limits', () => {
    const soft = aLimits({ size: { maxCu: 1 } });
    const hard = aLimits({ size: { maxCu: 2 }, hard: true });
    expect(wanted({ policies: [schedule, undo, soft] }).size).toEqual(LARGE);
    expect(wanted({ policies: [schedule, undo, hard] }).size).toEqual({ minCu: 1, maxCu: 2 });
    const holds = [aHold({ size: SMALL })];
    expect(planFor({ ...given(), holds }).verdict).toBe('none');
  });
});

describe('setting back', () => {
  const plan = (one: Case) => planFor(given(one));
  const restarting = aGuard({ remedy: 'undo_with_restart' });
  const asleep = { ...small, state: 'idle' } as const;

  it('waits until the compute sleeps, for as long as that takes', () => {
    expect(plan({})).toMatchObject({ verdict: 'wait', heldBy: ['waiting_for_idle'] });
    expect(plan({}).untilMs).toBeUndefined();
    expect(plan({ nowMs: SEVEN + 3 * DAY_MS + DAY_MS / 2 }).heldBy).toEqual(['waiting_for_idle']);
    const written = plan({ compute: asleep });
    expect(written).toMatchObject({ verdict: 'act', actions: [{ fields: LARGE }] });
  });

  it('restarts it where the guard says so, and never past a freeze', () => {
    const acts = plan({ policies: [schedule, restarting] });
    expect(acts).toMatchObject({ verdict: 'act', actions: [{ disconnects: true, policy: 'latency' }] });
    const frozen = plan({ policies: [schedule, restarting, aFreeze()] });
    expect(frozen).toMatchObject({ verdict: 'wait', heldBy: ['frozen'] });
    expect(plan({ policies: [schedule, restarting, aFreeze({ allowRaise: true })] }).verdict).toBe('act');
  });

  it('is never past a hold, which says so', () => {
    const holds = [aHold({ size: SMALL, reason: 'a sale' })];
    const one = { ...given({ policies: [schedule, restarting] }), holds };
    const evaluated = evaluate({ ...one, mode: 'enforce', projectBusy: false });
    expect(obstacleToUndo({ ...evaluated, compute: one.compute, record: one.record })).toContain('a sale');
    const frozen = planFor({ ...given({ policies: [schedule, restarting] }), holds: [aHold({ freeze: true })] });
    expect(frozen.verdict).not.toBe('act');
  });

  it('is not kept back by what holds other changes', () => {
    const guardFinding = {
      ...{ guard: 'latency', from: LARGE, to: SMALL, remedy: 'undo_with_restart' as const },
      ...{ loweredAtMs: SEVEN, badSinceMs: SEVEN, foundAtMs: SEVEN },
    };
    const other = floor({ fields: { suspendTimeoutSeconds: -1 }, lowered: { suspendTimeoutSeconds: 60 } });
    const one = given({ policies: [schedule, restarting], floors: { size: floor(), suspend_timeout: other } });
    const holds = [aHold({ suspendTimeoutSeconds: 60, reason: 'a sale' })];
    const evaluated = evaluate({ ...one, holds, mode: 'enforce', projectBusy: false });
    const record = { ...one.record, guardFinding };
    expect(obstacleToUndo({ ...evaluated, compute: one.compute, record })).toBeUndefined();
  });

  it('is at once for a timeout', () => {
    const never = floor({ fields: { suspendTimeoutSeconds: -1 }, lowered: { suspendTimeoutSeconds: 60 } });
    expect(plan({ floors: { suspend_timeout: never } })).toMatchObject({
      ...{ verdict: 'act', actions: [{ fields: { suspendTimeoutSeconds: -1 }, disconnects: false }] },
    });
  });

  it("does not delay the morning's raise, not even where that is only in part beyond the floor", () => {
    const morning = { nowMs: NEXT_EIGHT };
    expect(plan(morning)).toMatchObject({ verdict: 'act', actions: [{ policy: 'office-hours' }] });
    const floors = { size: floor({ fields: { minCu: 2, maxCu: 2 } }) };
    expect(plan({ ...morning, floors })).toMatchObject({
      verdict: 'act',
      actions: [{ fields: { minCu: 2, maxCu: 4 } }],
    });
  });

  it('leaves a lowering down to the floor to the rules of its policy', () => {
    const compute = { ...small, minCu: 2, maxCu: 8 };
    expect(plan({ compute })).toMatchObject({ verdict: 'wait', heldBy: ['guard'] });
    const healthy = planFor({ ...given({ compute }), verdictOf: () => ({ state: 'healthy', message: '' }) });
    expect(healthy).toMatchObject({ verdict: 'act', actions: [{ fields: LARGE }] });
  });
});

describe('what a guard finds', () => {
  const lowered = aRecord({
    lastApplied: { ...SMALL, suspendTimeoutSeconds: 60 },
    lastChanges: {
      size: { before: LARGE, answeredAtMs: SEVEN },
      suspend_timeout: { before: { suspendTimeoutSeconds: -1 }, answeredAtMs: SEVEN },
    },
    setBy: { size: 'office-hours', suspend_timeout: 'hold h-1' },
  });
  const found = {
    guard: 'latency',
    loweredAtMs: SEVEN,
    badSinceMs: SEVEN,
    foundAtMs: SEVEN + 1,
    remedy: 'undo',
  } as const;
  const policyOf = (name: string | undefined) => (name === 'office-hours' ? { name, terms: 'abc' } : undefined);

  it('makes floors of what policies lowered, none of what people did, and none with notify', () => {
    const lowering = loweringOf(lowered, 0);
    if (!lowering) throw new Error('no lowering');
    const after = withFinding(lowered, found, lowering, policyOf);
    expect(after.floors).toEqual({
      size: {
        guard: 'latency',
        sinceMs: SEVEN + 1,
        fields: LARGE,
        lowered: SMALL,
        policy: 'office-hours',
        terms: 'abc',
      },
    });
    expect(after.guardFinding).toMatchObject({ remedy: 'undo', from: { ...LARGE, suspendTimeoutSeconds: -1 } });
    const told = withFinding(lowered, { ...found, remedy: 'notify' }, lowering, policyOf);
    expect([told.floors, told.guardFinding.remedy]).toEqual([undefined, 'notify']);
    expect(loweringOf(after, 0)).toBeUndefined();
    const again = {
      ...lowering,
      changes: [{ group: 'size', from: { minCu: 1, maxCu: 8 }, to: LARGE, policy: 'latency' }],
    } as const;
    expect(withFinding(after, found, again, policyOf).floors?.size).toMatchObject({
      fields: { maxCu: 8 },
      policy: 'office-hours',
    });
    expect(withoutFloors(after).floors).toBeUndefined();
    expect(withoutFloors(lowered)).toBe(lowered);
  });
});
