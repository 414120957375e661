import { describe, expect, it } from 'vitest';
import { isBoundary, lastBoundary, nextBoundary } from '../../src/domain/boundaries.ts';
import { decide } from '../../src/domain/decide.ts';
import { aCompute, aSchedule, at, aWindow, compiled } from '../support/builders.ts';

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
    const policies = compiled(aSchedule({ select: { projects: ['*'], minAgeMs: 30 * 60_000 } }));
    const next = (afterMs: number) => nextBoundary({ policies, compute: young, baseline: undefined }, afterMs);
    expect(next(at('2026-03-06T08:05:00Z'))).toBe(at('2026-03-06T08:20:00Z'));
    expect(next(at('2026-03-06T08:20:00Z'))).toBe(at('2026-03-06T18:00:00Z'));
  });

  it('does not exist where no policy selects the compute or nothing ever changes', () => {
    expect(nextBoundary(input(aSchedule({ select: { projects: ['x'], minAgeMs: 0 } })), 0)).toBeUndefined();
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
