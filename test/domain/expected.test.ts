import { describe, expect, it } from 'vitest';
import { expectedCuHours, usageProfile, useInHour, widestSettings } from '../../src/domain/forecast/expected.ts';

const HOUR_MS = 3_600_000;
/** A Monday. */
const FROM_MS = Date.parse('2026-03-02T00:00:00Z');
const HAD = { minCu: 0.5, maxCu: 4, suspendTimeoutSeconds: 300 };
const NEVER = { ...HAD, suspendTimeoutSeconds: -1 };

/** Four weeks of hours. */
function hours(used: (hour: number) => number | null) {
  return Array.from({ length: 4 * 168 }, (_, index) => {
    const cu = used(index % 168);
    return { startMs: FROM_MS + (index - 4 * 168) * HOUR_MS, seconds: 3600, cuSeconds: cu === null ? null : cu * 3600 };
  });
}

const segment = (settings: typeof HAD, fromHour = 0, toHour = 168) => ({
  ...{ ...settings, policies: [] as string[] },
  ...{ fromMs: FROM_MS + fromHour * HOUR_MS, toMs: FROM_MS + toHour * HOUR_MS },
});

describe('what an hour would use with other settings', () => {
  it.each([
    ['the same settings', 1, HAD, HAD, { low: 1, high: 1 }],
    ['nobody there', 0, HAD, { ...HAD, minCu: 2 }, { low: 0, high: 0 }],
    ['nobody there, and it may not sleep', 0, HAD, NEVER, { low: 0.5, high: 0.5 }],
    // Awake for the whole hour at 0.5 CU, or for an eighth of it at 4.
    ['a larger minimum', 0.5, HAD, { ...HAD, minCu: 1 }, { low: 0.5, high: 1 }],
    ['a smaller maximum', 0.5, HAD, { ...HAD, maxCu: 1 }, { low: 0.125, high: 0.5 }],
    ['at work that fits', 1, HAD, { ...HAD, minCu: 0.5, maxCu: 8 }, { low: 1, high: 1 }],
    ['a smaller minimum', 0.5, HAD, { ...HAD, minCu: 0.25 }, { low: 0.25, high: 0.5 }],
    ['at work with a smaller minimum', 1, HAD, { ...HAD, minCu: 0.25 }, { low: 11 / 14, high: 1 }],
    ['never asleep at its minimum, and now it may sleep', 0.5, NEVER, HAD, { low: 0, high: 0.5 }],
    ['never asleep and at work', 2, NEVER, HAD, { low: 12 / 7, high: 2 }],
    ['never asleep before and after', 2, NEVER, NEVER, { low: 2, high: 2 }],
  ])('%s', (_, used, had, will, expected) => {
    const { low, high } = useInHour(used, had, will);
    expect(low).toBeCloseTo(expected.low, 12);
    expect(high).toBeCloseTo(expected.high, 12);
  });
});

describe('what is expected of a week', () => {
  it('is what was used, where nothing changes', () => {
    const profile = usageProfile(hours((hour) => (hour % 24 < 8 ? 0 : 1)));
    expect(profile && expectedCuHours([segment(HAD)], profile, HAD)).toEqual({ low: 112, mid: 112, high: 112 });
  });

  it('is weighted by the hours of the week in which a segment counts', () => {
    const profile = usageProfile(hours((hour) => (hour % 24 < 8 ? 0 : 0.5)));
    const large = { ...HAD, minCu: 2 };
    // By night nobody is there: a larger minimum then costs nothing.
    expect(profile && expectedCuHours([segment(large, 0, 8)], profile, HAD)).toEqual({ low: 0, mid: 0, high: 0 });
    expect(profile && expectedCuHours([segment(large, 8, 10)], profile, HAD)).toEqual({ low: 1, mid: 2.5, high: 4 });
  });

  it('takes the same hour of other days for one that was never measured, and parts of hours', () => {
    const profile = usageProfile(hours((hour) => (hour < 24 ? null : (hour % 24) / 10 + 0.5)));
    expect(profile && expectedCuHours([segment(HAD, 0, 1)], profile, HAD).mid).toBeCloseTo(0.5, 9);
    expect(profile && expectedCuHours([segment(HAD, 5, 5.5)], profile, HAD).mid).toBeCloseTo(0.5, 9);
  });

  it('is unknown with less than six days of known hours', () => {
    expect(usageProfile(hours((hour) => (hour === 3 ? 1 : null)))).toBeUndefined();
    expect(usageProfile([])).toBeUndefined();
    expect(usageProfile(hours(() => 1).slice(0, 143))).toBeUndefined();
    expect(usageProfile(hours(() => 1).slice(0, 144))).toBeDefined();
  });

  it('takes the widest of two settings that it may have had', () => {
    const small = { minCu: 0.25, maxCu: 1, suspendTimeoutSeconds: 60 };
    expect(widestSettings(NEVER, small)).toEqual({ minCu: 0.25, maxCu: 4, suspendTimeoutSeconds: 60 });
    expect(widestSettings(NEVER, { ...NEVER, maxCu: 2 })).toEqual(NEVER);
  });
});
