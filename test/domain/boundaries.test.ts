import { describe, expect, it } from 'vitest';
import { isBoundary, lastBoundary, nextBoundary } from '../../src/domain/decide/boundaries.ts';
import { decide } from '../../src/domain/decide/decide.ts';
import { aCompute, aFreeze, aHold, aRestart, aSchedule, at, aWindow, compiled } from '../support/builders.ts';
import { aSelector } from '../support/selectors.ts';

const input = (...policies: Parameters<typeof compiled>) => ({
  policies: compiled(...policies),
  compute: aCompute(),
  baseline: undefined,
});

describe('nextBoundary', () => {
  it('is the start and the end of a window, and skips days without one', () => {
    const schedule = input(aSchedule());
    expect(nextBoundary(schedule, at('2026-03-06T07:00:00Z'))).toBe(at('2026-03-06T08:00:00Z'));
    expect(nextBoundary(schedule, at('2026-03-06T08:00:00Z'))).toBe(at('2026-03-06T18:00:00Z'));
    expect(nextBoundary(schedule, at('2026-03-06T18:00:00Z'))).toBe(at('2026-03-09T08:00:00Z'));
  });

  it('passes over changes of windows that change nothing for the compute', () => {
    const hidden = aSchedule({
      name: 'hidden',
      priority: -1,
      windows: [{ at: [aWindow({ startMinute: 600 })], size: { minCu: 2, maxCu: 2 } }],
      otherwise: 'leave',
    });
    expect(nextBoundary(input(aSchedule(), hidden), at('2026-03-06T08:00:00Z'))).toBe(at('2026-03-06T18:00:00Z'));
  });

  it('is known for a compute that is still too young for its policy', () => {
    const young = aCompute({ createdAtMs: at('2026-03-06T07:50:00Z') });
    const policies = compiled(aSchedule({ select: aSelector({ projects: ['*'], minAgeMs: 30 * 60_000 }) }));
    const next = (afterMs: number) => nextBoundary({ policies, compute: young, baseline: undefined }, afterMs);
    expect(next(at('2026-03-06T08:05:00Z'))).toBe(at('2026-03-06T08:20:00Z'));
    expect(next(at('2026-03-06T08:20:00Z'))).toBe(at('2026-03-06T18:00:00Z'));
  });

  it('does not exist where no policy selects the compute or nothing ever changes', () => {
    expect(nextBoundary(input(aSchedule({ select: aSelector({ projects: ['x'] }) })), 0)).toBeUndefined();
    expect(nextBoundary(input(aSchedule({ windows: [] })), at('2026-03-06T08:00:00Z'))).toBeUndefined();
  });

  it('is the end of an absolute interval also where a recurring time of the same window goes on', () => {
    const mixed = [
      aWindow(),
      { kind: 'interval' as const, startMs: at('2026-03-06T12:00:00Z'), endMs: at('2026-03-06T13:00:00Z') },
    ];
    const schedule = input(
      aSchedule({ windows: [{ at: mixed, size: { minCu: 2, maxCu: 2 } }] }),
      aSchedule({ name: 'later' }),
    );
    expect(nextBoundary(schedule, at('2026-03-06T08:00:00Z'))).toBe(at('2026-03-06T12:00:00Z'));
    expect(nextBoundary(schedule, at('2026-03-06T12:00:00Z'))).toBe(at('2026-03-06T13:00:00Z'));
    expect(lastBoundary(schedule, at('2026-03-06T14:00:00Z'), 'size')).toBe(at('2026-03-06T13:00:00Z'));
  });

  it('is when a hold is set and when it expires, of this compute alone', () => {
    const sized = aHold({
      size: { minCu: 8, maxCu: 8 },
      createdAtMs: at('2026-03-06T10:00:00Z'),
      expiresAtMs: at('2026-03-06T11:00:00Z'),
    });
    const held = { ...input(aSchedule()), holds: [sized] };
    expect(nextBoundary(held, at('2026-03-06T09:00:00Z'))).toBe(sized.createdAtMs);
    expect(nextBoundary(held, sized.createdAtMs)).toBe(sized.expiresAtMs);
    expect(lastBoundary(held, at('2026-03-06T12:00:00Z'), 'size')).toBe(sized.expiresAtMs);
    expect(lastBoundary(held, sized.createdAtMs, 'size')).toBe(sized.createdAtMs);
    expect(lastBoundary(held, at('2026-03-06T12:00:00Z'), 'suspend_timeout')).toBe(Number.NEGATIVE_INFINITY);
    const others = { ...held, holds: [{ ...sized, computeId: 'ep-two' }] };
    expect(nextBoundary(others, at('2026-03-06T09:00:00Z'))).toBe(at('2026-03-06T18:00:00Z'));
  });

  it('is when a restart becomes possible and when it no longer is, for nothing but itself', () => {
    const restart = input(aRestart());
    expect(nextBoundary(restart, at('2026-03-06T07:00:00Z'))).toBe(at('2026-03-06T08:00:00Z'));
    expect(nextBoundary(restart, at('2026-03-06T08:00:00Z'))).toBe(at('2026-03-06T18:00:00Z'));
    expect(nextBoundary(restart, at('2026-03-06T07:00:00Z'), 'size')).toBeUndefined();
    const others = input(
      aRestart({ at: [aWindow({ endMinute: 720 })] }),
      aRestart({ at: [aWindow({ startMinute: 720 })] }),
    );
    expect(nextBoundary(others, at('2026-03-06T08:00:00Z'))).toBe(at('2026-03-06T12:00:00Z'));
    expect(nextBoundary(input(aFreeze({ at: [aWindow()] })), at('2026-03-06T07:00:00Z'))).toBeUndefined();
  });

  it('is looked for within two years, and back for 35 days', () => {
    const once = (startMs: number, endMs: number) =>
      input(aSchedule({ windows: [{ at: [{ kind: 'interval', startMs, endMs }], size: { minCu: 2, maxCu: 2 } }] }));
    const now = at('2026-03-06T08:00:00Z');
    const day = 86_400_000;
    expect(nextBoundary(once(now + 732 * day, now + 733 * day), now)).toBe(now + 732 * day);
    expect(nextBoundary(once(now + 732 * day + 1, now + 733 * day), now)).toBeUndefined();
    expect(lastBoundary(once(0, now - 35 * day), now, 'size')).toBe(now - 35 * day);
    expect(lastBoundary(once(0, now - 35 * day - 1), now, 'size')).toBe(Number.NEGATIVE_INFINITY);
  });

  it('is also what changes only for policies that observe, or only for those that write', () => {
    const trial = aSchedule({
      name: 'trial',
      mode: 'observe',
      priority: 1,
      windows: [{ at: [aWindow({ endMinute: 540 })], size: { minCu: 9, maxCu: 9 } }],
      otherwise: 'leave',
    });
    expect(nextBoundary(input(aSchedule(), trial), at('2026-03-06T08:00:00Z'))).toBe(at('2026-03-06T09:00:00Z'));
    const covering = { ...trial, windows: [{ at: [{ kind: 'always' as const }], size: { minCu: 9, maxCu: 9 } }] };
    expect(nextBoundary(input(aSchedule(), covering), at('2026-03-06T08:00:00Z'))).toBe(at('2026-03-06T18:00:00Z'));
  });

  it('separates spans in which the decision is constant', () => {
    const schedule = input(
      aSchedule(),
      aSchedule({
        name: 'night',
        priority: 3,
        windows: [{ at: [aWindow({ startMinute: 1320, endMinute: 360, endDayOffset: 1 })], suspendTimeoutSeconds: 60 }],
        otherwise: 'leave',
      }),
    );
    const six = at('2026-03-02T18:00:00Z');
    const ten = at('2026-03-02T22:00:00Z');
    expect([nextBoundary(schedule, six), nextBoundary(schedule, six, 'suspend_timeout')]).toEqual([ten, ten]);
    expect(nextBoundary(schedule, six, 'size')).toBe(at('2026-03-03T08:00:00Z'));
    let from = at('2026-03-02T00:00:00Z');
    for (let step = 0; step < 12; step += 1) {
      const next = nextBoundary(schedule, from) ?? Number.NaN;
      const wish = (instantMs: number) => decide({ ...schedule, instantMs }).desired;
      expect(wish(next - 1)).toEqual(wish(from));
      expect(wish(next)).not.toEqual(wish(from));
      expect(isBoundary(schedule, next)).toBe(true);
      from = next;
    }
  });
});
