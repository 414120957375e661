import { describe, expect, it } from 'vitest';
import type { Policy } from '../../../src/domain/policy/policy.ts';
import {
  aCompute,
  aHeadroom,
  aHold,
  aLimits,
  aRecord,
  aSchedule,
  at,
  aWindow,
  compiled,
  countsUntil,
  planFor,
} from '../../support/builders.ts';

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
/** A Monday; the window of `aSchedule` is open from 08:00 to 18:00. */
const EIGHT = at('2026-03-02T08:00:00Z');
const SIX = at('2026-03-02T18:00:00Z');
const any = { lower: { when: 'any', atDeadline: 'apply' } } as const;
const large = aCompute({ minCu: 1, maxCu: 4 });
const early = (beforeMs: number) => ({ nowMs: EIGHT - beforeMs });

function plan(options: Partial<Parameters<typeof planFor>[0]>, policies: Policy[] = [aSchedule({ disruption: any })]) {
  return planFor({ policies: compiled(...policies), compute: large, record: aRecord(), nowMs: EIGHT, ...options });
}

describe('a lowering that its next boundary would soon undo', () => {
  it('waits for that boundary, and is not made', () => {
    expect(plan(early(2 * MINUTE_MS + 1)).verdict).toBe('act');
    const waiting = plan(early(50 * SECOND_MS));
    expect(waiting).toMatchObject({ verdict: 'wait', heldBy: ['ends_soon'], untilMs: EIGHT });
    expect(waiting.reasons.at(-1)?.message).toBe(
      'it would be undone at 2026-03-02T08:00:00Z: waiting for that, so that the compute is not restarted twice',
    );
    expect(plan(early(2 * MINUTE_MS)).heldBy).toEqual(['ends_soon']);
    expect(plan({ nowMs: EIGHT, compute: { ...large, suspendTimeoutSeconds: 300 } }).verdict).toBe('none');
  });

  it('waits within the cooldown at most, which keeps restarts apart', () => {
    const cooling = (cooldownMs: number) => [aSchedule({ disruption: { ...any, cooldownMs } })];
    const minute = cooling(MINUTE_MS);
    expect(plan(early(MINUTE_MS + 1), minute).verdict).toBe('act');
    expect(plan(early(MINUTE_MS), minute).heldBy).toEqual(['ends_soon']);
    expect(plan({ ...early(MINUTE_MS + 1), disruption: { cooldownMs: MINUTE_MS } }).verdict).toBe('act');
    expect(plan(early(SECOND_MS), cooling(0)).verdict).toBe('act');
  });

  it('is said to wait for sleep where it does that, too', () => {
    const idle = aSchedule({ disruption: { lower: { when: 'idle', atDeadline: 'apply' } } });
    expect(plan(early(MINUTE_MS), [idle]).heldBy).toEqual(['waiting_for_idle']);
  });

  it('is made if it restarts nothing, or if a person or a hard limit demands it', () => {
    const soon = early(MINUTE_MS);
    expect(plan({ ...soon, compute: { ...large, state: 'idle' } }).verdict).toBe('act');
    const held = aHold({ size: { minCu: 0.25, maxCu: 1 }, expiresAtMs: EIGHT });
    expect(plan({ ...soon, holds: [held] }).verdict).toBe('act');
    const hard = aLimits({ size: { maxCu: 2 }, hard: true });
    expect(plan(soon, [aSchedule({ disruption: any }), hard]).verdict).toBe('act');
  });

  it('leaves a timeout alone, unless timeouts restart computes in the account', () => {
    const windows = [{ at: [aWindow()], suspendTimeoutSeconds: 3600 }];
    const timeouts = [aSchedule({ windows, otherwise: { suspendTimeoutSeconds: 300 }, disruption: any })];
    const other = { ...early(MINUTE_MS), compute: { ...large, suspendTimeoutSeconds: 3600 } };
    expect(plan(other, timeouts).verdict).toBe('act');
    const restarts = { verified: { timeout_change: 'restarts' } } as const;
    expect(plan({ ...other, ...restarts }, timeouts).heldBy).toEqual(['ends_soon']);
    expect(plan({ ...other, ...restarts, ...early(5 * MINUTE_MS) }, timeouts).verdict).toBe('act');
  });
});

describe('a late raise that its next boundary would soon undo', () => {
  const small = aCompute({ minCu: 0.25, maxCu: 1 });
  const soon = { nowMs: SIX - MINUTE_MS, compute: small };

  it('waits for that boundary, and is not made', () => {
    expect(plan({ ...soon, nowMs: SIX - 2 * MINUTE_MS - 1 }).verdict).toBe('act');
    expect(plan(soon)).toMatchObject({ verdict: 'wait', heldBy: ['ends_soon'], untilMs: SIX });
    expect(plan({ ...soon, nowMs: SIX }).verdict).toBe('none');
  });

  it('is made if it restarts nothing, if connections run out, or if a person or a hard limit demands it', () => {
    expect(plan({ ...soon, compute: { ...small, state: 'idle' } }).verdict).toBe('act');
    const urgent = [aSchedule(), aHeadroom({ criticalShare: 0.9 })];
    expect(plan({ ...soon, connections: countsUntil(soon.nowMs, 440) }, urgent).verdict).toBe('act');
    const held = aHold({ size: { minCu: 1, maxCu: 4 }, expiresAtMs: SIX });
    expect(plan({ ...soon, holds: [held] }).verdict).toBe('act');
    const hard = aLimits({ size: { minCu: 1 }, hard: true });
    expect(plan(soon, [aSchedule(), hard]).verdict).toBe('act');
  });

  it('is made in time, however short its window is', () => {
    const short = [aSchedule({ windows: [{ at: [aWindow({ endMinute: 481 })], size: { minCu: 1, maxCu: 4 } }] })];
    const at = (afterMs: number) => plan({ nowMs: EIGHT + afterMs, compute: small }, short);
    expect(at(0).verdict).toBe('act');
    expect(at(30 * SECOND_MS).verdict).toBe('act');
    expect(at(31 * SECOND_MS).heldBy).toEqual(['ends_soon']);
  });
});

describe('what is not undone', () => {
  const soon = { nowMs: SIX - MINUTE_MS };

  it('a raise is made if its next boundary raises once more', () => {
    const windows = [{ at: [aWindow({ startMinute: 480, endMinute: 1080 })], size: { minCu: 1, maxCu: 4 } }];
    const evening = [aSchedule({ windows, otherwise: { size: { minCu: 4, maxCu: 8 } } })];
    expect(plan({ ...soon, compute: aCompute({ minCu: 0.25, maxCu: 1 }) }, evening).verdict).toBe('act');
  });

  it('a lowering is made if its next boundary lowers once more', () => {
    expect(plan({ ...soon, compute: aCompute({ minCu: 4, maxCu: 8 }) }).verdict).toBe('act');
  });

  it('a lowering is made if only an observing policy wants more at the next boundary', () => {
    const night = aSchedule({ windows: [], disruption: any });
    const observed = aSchedule({ name: 'tried', mode: 'observe', priority: 1, otherwise: {} });
    expect(plan(early(MINUTE_MS), [night, observed]).verdict).toBe('act');
  });
});
