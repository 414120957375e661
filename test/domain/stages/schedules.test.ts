import { describe, expect, it } from 'vitest';
import { nextBoundary } from '../../../src/domain/decide/boundaries.ts';
import { type DecideInput, decide } from '../../../src/domain/decide/decide.ts';
import { withBudgetSteps } from '../../../src/domain/policy/compiled-policies.ts';
import type { Policy } from '../../../src/domain/policy/policy.ts';
import type { ScheduleWindow } from '../../../src/domain/policy/schedule-window.ts';
import {
  aBudget,
  aCompute,
  aHeadroom,
  aHold,
  aLimits,
  aSchedule,
  aStepSpan,
  at,
  aWindow,
  compiled,
} from '../../support/builders.ts';
import { traceOf } from './trace-text.ts';

const MINUTE_MS = 60_000;
const size = (minCu: number, maxCu = minCu) => ({ minCu, maxCu });

/** 08:00–18:00 with a lead of ten minutes. */
const ready = (fields: Partial<ScheduleWindow> = {}): ScheduleWindow => ({
  at: [aWindow()],
  size: size(2, 4),
  readyLeadMs: 10 * MINUTE_MS,
  ...fields,
});

function sizeTrace(time: string, ...policies: Policy[]): string[] {
  const baseline = { minCu: 1, maxCu: 2, suspendTimeoutSeconds: 300 };
  const compute = aCompute();
  return traceOf(
    decide({ policies: compiled(...policies), compute, baseline, instantMs: at(`2026-03-02T${time}Z`) }),
    'size',
  );
}

describe('`otherwise` while a window is open', () => {
  const given = (...policies: Policy[]) => {
    const input = { policies: compiled(...policies), compute: aCompute(), baseline: undefined };
    return decide({ ...input, instantMs: at('2026-03-02T12:00:00Z') }).desired;
  };
  const otherwise = { size: size(0.25), suspendTimeoutSeconds: 60 };

  it('decides the fields that the window leaves out', () => {
    const sized = aSchedule({ windows: [{ at: [aWindow()], size: size(2) }], otherwise });
    expect(given(sized)).toEqual({ size: size(2), suspendTimeoutSeconds: 60 });
    const timed = aSchedule({ windows: [{ at: [aWindow()], suspendTimeoutSeconds: -1 }], otherwise });
    expect(given(timed)).toEqual({ size: size(0.25), suspendTimeoutSeconds: -1 });
  });

  it('gives way to an open window of any other policy, and leaves the field if it says leave', () => {
    const sized = aSchedule({ priority: 9, windows: [{ at: [aWindow()], size: size(2) }], otherwise });
    const timed = aSchedule({
      name: 'timed',
      windows: [{ at: [aWindow()], suspendTimeoutSeconds: 600 }],
      otherwise: 'leave',
    });
    expect(given(sized, timed)).toEqual({ size: size(2), suspendTimeoutSeconds: 600 });
    expect(given(timed)).toEqual({ size: null, suspendTimeoutSeconds: 600 });
  });
});

describe('a window with ready', () => {
  const day = aSchedule({ name: 'day', windows: [ready()], otherwise: { size: size(0.25, 1) } });

  it('raises by its lead before its start, not a millisecond earlier', () => {
    expect(sizeTrace('07:49:59.999', day)).toEqual(['otherwise day → 0.25-1 CU']);
    expect(sizeTrace('07:50:00', day)).toEqual(['otherwise day → 0.25-1 CU', 'ready day → 2-4 CU']);
    expect(sizeTrace('08:00:00', day)).toEqual(['window_open day → 2-4 CU', 'outranked day']);
  });

  it('raises only: each end is the larger of the old and the new', () => {
    const wide = aSchedule({ name: 'day', windows: [ready({ size: size(0.25, 4) })], otherwise: { size: size(1, 2) } });
    expect(sizeTrace('07:55:00', wide)).toEqual(['otherwise day → 1-2 CU', 'ready day → 1-4 CU']);
    const lowering = aSchedule({ name: 'day', windows: [ready({ size: size(1) })], otherwise: { size: size(4) } });
    expect(sizeTrace('07:55:00', lowering)).toEqual(['otherwise day → 4 CU', 'not_yet day']);
    const within = aSchedule({ name: 'day', windows: [ready({ size: size(2, 4) })], otherwise: { size: size(4) } });
    expect(sizeTrace('07:55:00', within)).toEqual(['otherwise day → 4 CU', 'not_yet day']);
  });

  it('compares with what the compute has where nothing else asks for a value', () => {
    const alone = aSchedule({ name: 'day', windows: [ready()], otherwise: 'leave' });
    expect(sizeTrace('07:55:00', alone)).toEqual(['ready day → 2-4 CU']);
    const small = aSchedule({ name: 'day', windows: [ready({ size: size(0.25) })], otherwise: 'leave' });
    expect(sizeTrace('07:55:00', small)).toEqual(['not_yet day']);
  });

  const alone = aSchedule({ name: 'day', windows: [ready()], otherwise: 'leave' });
  const step = { at: 1, of: 'spent', notify: [], limits: { size: { low: 0, high: 8 } } } as const;
  it.each<[string, Pick<DecideInput, 'policies' | 'connections'>]>([
    ['limits give', { policies: compiled(alone, aLimits({ size: { maxCu: 8 } })) }],
    ['headroom gives', { policies: compiled(alone, aHeadroom()), connections: new Map() }],
    [
      'a step of a budget gives',
      { policies: withBudgetSteps(compiled(alone, aBudget({ steps: [step] })), [aStepSpan({ fromMs: 0 })]) },
    ],
  ])('keeps what it has raised, though %s back the baseline where nothing else asks for a value', (_what, given) => {
    const baseline = { minCu: 0.25, maxCu: 1, suspendTimeoutSeconds: 300 };
    for (const has of [size(0.25, 1), size(2, 4)]) {
      // Nobody is connected to a compute that sleeps, so headroom knows all that it must.
      const about = { ...given, compute: aCompute({ ...has, state: 'idle' }), baseline };
      const sizeAt = (time: string) => decide({ ...about, instantMs: at(`2026-03-02T${time}Z`) }).desired.size;
      expect(['07:49:59', '07:50:00', '07:59:59', '08:00:00'].map(sizeAt)).toEqual([
        size(0.25, 1),
        ...[size(2, 4), size(2, 4), size(2, 4)],
      ]);
    }
  });

  it('lengthens a timeout early, never shortens it', () => {
    const timeout = (from: number, to: number) => {
      const policies = compiled(
        aSchedule({
          windows: [{ at: [aWindow()], suspendTimeoutSeconds: to, readyLeadMs: 600_000 }],
          otherwise: { suspendTimeoutSeconds: from },
        }),
      );
      return decide({ policies, compute: aCompute(), baseline: undefined, instantMs: at('2026-03-02T07:55:00Z') });
    };
    expect(timeout(300, -1).desired.suspendTimeoutSeconds).toBe(-1);
    expect(timeout(-1, 300).desired.suspendTimeoutSeconds).toBe(-1);
    expect(timeout(600, 300).desired.suspendTimeoutSeconds).toBe(600);
  });

  describe('beside another window that is open', () => {
    const night = (fields: Partial<Policy> = {}, endMinute = 480) =>
      ({
        ...aSchedule({
          name: 'night',
          windows: [{ at: [aWindow({ startMinute: 1080, endMinute, endDayOffset: 1, days: [7] })], size: size(0.5) }],
          otherwise: 'leave',
        }),
        ...fields,
      }) as Policy;

    it.each([
      [
        'waits for one of a higher priority',
        night({ priority: 1 }),
        ['window_open night → 0.5 CU', 'outranked day', 'outranked day'],
      ],
      [
        'goes before a later one that closes when it opens',
        night(),
        ['window_open night → 0.5 CU', 'outranked day', 'ready day → 2-4 CU'],
      ],
      [
        'waits for a later one that stays open',
        night({}, 481),
        ['window_open night → 0.5 CU', 'outranked day', 'outranked day'],
      ],
    ])('%s', (_what, other, expected) => {
      expect(sizeTrace('07:55:00', day, other).toSorted()).toEqual(expected.toSorted());
    });

    it('goes before one of a lower priority', () => {
      expect(sizeTrace('07:55:00', { ...day, priority: 1 }, night())).toEqual([
        'window_open night → 0.5 CU',
        'outranked day',
        'ready day → 2-4 CU',
      ]);
    });
  });

  it('lets several lead, unless a better one starts no later', () => {
    const early = aSchedule({ name: 'early', windows: [ready({ size: size(1, 8) })], otherwise: 'leave' });
    const late = (startMinute: number) =>
      aSchedule({
        name: 'late',
        windows: [ready({ at: [aWindow({ startMinute })], size: size(3) })],
        otherwise: 'leave',
      });
    expect(sizeTrace('07:55:00', early, late(485))).toEqual(['ready early → 1-8 CU', 'ready late → 3-8 CU']);
    expect(sizeTrace('07:55:00', early, late(480))).toEqual(['outranked early', 'ready late → 3 CU']);
    const important = { ...late(485), priority: 1 };
    expect(sizeTrace('07:55:00', early, important)).toEqual(['ready early → 1-8 CU', 'ready late → 3-8 CU']);
  });

  it('has its boundary at the start of the lead', () => {
    const input = { policies: compiled(day), compute: aCompute(), baseline: undefined };
    expect(nextBoundary(input, at('2026-03-02T07:00:00Z'))).toBe(at('2026-03-02T07:50:00Z'));
    expect(nextBoundary(input, at('2026-03-02T07:50:00Z'))).toBe(at('2026-03-02T18:00:00Z'));
  });
});

describe('computes under the same policies', () => {
  const NIGHT = at('2026-03-02T23:00:00Z');

  it('each get back a baseline of their own', () => {
    const policies = compiled(aSchedule({ name: 'back', windows: [], otherwise: 'baseline' }));
    const wish = (minCu: number, suspendTimeoutSeconds: number) =>
      decide({ policies, compute: aCompute(), baseline: { ...size(minCu), suspendTimeoutSeconds }, instantMs: NIGHT });
    expect(wish(1, 60).desired).toEqual({ size: size(1), suspendTimeoutSeconds: 60 });
    expect(wish(2, 300).desired).toEqual({ size: size(2), suspendTimeoutSeconds: 300 });
    expect(traceOf(wish(2, 300), 'size')).toEqual(['baseline back → 2 CU']);
  });

  it('are led up each from what it has', () => {
    const policies = compiled(aSchedule({ windows: [ready()], otherwise: 'leave' }));
    const wish = (maxCu: number) =>
      decide({ policies, compute: aCompute({ maxCu }), baseline: undefined, instantMs: at('2026-03-02T07:55:00Z') });
    expect(wish(2).desired.size).toEqual(size(2, 4));
    expect(wish(8).desired.size).toEqual(size(2, 8));
  });

  it('have traces of their own', () => {
    const policies = compiled(aSchedule());
    const first = decide({ policies, compute: aCompute(), baseline: undefined, instantMs: NIGHT });
    const limited = decide({
      policies,
      compute: aCompute(),
      baseline: undefined,
      holds: [aHold({ size: size(8) })],
      instantMs: NIGHT,
    });
    expect(traceOf(limited, 'size')).toEqual(['otherwise office-hours → 0.25-1 CU', 'hold h1 → 8 CU']);
    expect(traceOf(first, 'size')).toEqual(['otherwise office-hours → 0.25-1 CU']);
    expect(first.deciders.size?.code).toBe('otherwise');
    expect(first.trace.map(({ group }) => group)).toEqual(['size', 'suspend_timeout']);
    expect(first.desired.size).toEqual(size(0.25, 1));
  });
});

describe('otherwise: baseline', () => {
  it('leaves the field to the next while the baseline is not known', () => {
    const back = aSchedule({ name: 'back', priority: 1, otherwise: 'baseline', windows: [] });
    const rest = aSchedule({ name: 'rest', windows: [], otherwise: { size: size(1) } });
    const input = { compute: aCompute(), instantMs: at('2026-03-02T12:00:00Z'), baseline: undefined };
    expect(traceOf(decide({ ...input, policies: compiled(back, rest) }), 'size')).toEqual([
      'baseline_unknown back',
      'otherwise rest → 1 CU',
    ]);
    const alone = decide({ ...input, policies: compiled(back) });
    expect(traceOf(alone, 'size')).toEqual(['baseline_unknown back', 'no_value']);
    expect(alone.desired).toEqual({ size: null, suspendTimeoutSeconds: null });
  });
});
