import { describe, expect, it } from 'vitest';
import { DAY_MS, HOUR_MS } from '../../src/domain/time/units.ts';
import { projectMonth } from '../../src/domain/usage/projection.ts';
import { runsOut } from '../../src/domain/usage/runs-out.ts';
import { generateMonth } from './generated-months.ts';

const FROM_MS = Date.parse('2026-11-01T00:00:00Z');
const MONTH = { fromMs: FROM_MS, toMs: FROM_MS + 30 * DAY_MS, untilMs: FROM_MS + 10 * DAY_MS };
const days = (cuHours: number) =>
  new Map(Array.from({ length: 28 }, (_, index) => [FROM_MS + (index - 18) * DAY_MS, cuHours]));

describe('when what a plan includes is used', () => {
  it('is the day on which the projection reaches it', () => {
    const { earliestMs = 0, midMs = 0, latestMs = 0 } = runsOut(days(5), { month: MONTH, spent: 50, limit: 100 }) ?? {};
    expect(Math.abs(midMs - (FROM_MS + 20 * DAY_MS))).toBeLessThanOrEqual(HOUR_MS);
    expect(earliestMs).toBeLessThan(midMs);
    expect(latestMs).toBeGreaterThan(midMs);
    expect(latestMs - earliestMs).toBeLessThan(DAY_MS);
  });

  it('is never where less is used, and unknown where too few days are', () => {
    expect(runsOut(days(3), { month: MONTH, spent: 30, limit: 100 })).toBeUndefined();
    expect(runsOut(new Map(), { month: MONTH, spent: 99, limit: 100 })).toBeUndefined();
  });

  it.each([
    [5, 0.02, 2, 3],
    [5, 0.1, 3, 10],
    [10, 0.01, 1, 20],
    [24, 0, 1, 20],
  ])(
    'is within its range where a database of %d CU-hours a day has almost stopped, at %d for %d days',
    (busy, calm, calmDays, day) => {
      const month = { ...MONTH, untilMs: FROM_MS + day * DAY_MS };
      const known = new Map(
        Array.from({ length: 56 }, (_, ago) => [month.untilMs - (ago + 1) * DAY_MS, ago < calmDays ? calm : busy]),
      );
      const spent = [...known].reduce((total, [dayMs, used]) => total + (dayMs >= FROM_MS ? used : 0), 0);
      const { low, mid, high } = projectMonth(known, { month, spent, unknown: 0 }) ?? { low: 0, mid: 0, high: 0 };
      expect([low <= mid, mid <= high, spent < mid]).toEqual([true, true, true]);
      for (const part of [0.1, 0.3, 0.6, 0.9, 0.99]) {
        const range = runsOut(known, { month, spent, limit: spent + part * (mid - spent) });
        const { earliestMs = 0, midMs = 0, latestMs = Number.POSITIVE_INFINITY } = range ?? {};
        expect([part, 0 < earliestMs, earliestMs <= midMs, midMs <= latestMs]).toEqual([part, true, true, true]);
      }
    },
  );

  it('was when the days before reached it, where it is used up', () => {
    const outAt = (known: Map<number, number>) => {
      const { midMs = 0, ...range } = runsOut(known, { month: MONTH, spent: 120, limit: 100 }) ?? {};
      expect(range).toEqual({ earliestMs: midMs, latestMs: midMs });
      return (midMs - FROM_MS) / DAY_MS;
    };
    expect(outAt(days(12))).toBeCloseTo(100 / 12, 5);
    // Days that nobody knows are even, and estimates are scaled to what was metered.
    expect(outAt(new Map())).toBeCloseTo(100 / 12, 5);
    expect(outAt(days(24))).toBeCloseTo(100 / 12, 5);
    const first = new Map([...days(0)].map(([dayMs]) => [dayMs, dayMs === FROM_MS ? 110 : 1]));
    expect(outAt(first)).toBeLessThan(1);
  });
});

describe('over generated projects', () => {
  it('is within its range, mostly: bench/runs-out.ts has the figures', () => {
    const told = Array.from({ length: 40 }, (_, index) => {
      const month = generateMonth(index % 2 === 0 ? 'weekly' : 'shifts', 28, 700_001 + index);
      const limit = 0.8 * month.truth;
      return { said: month.runsOutOn(10, limit), trueMs: month.usedAtMs(limit) ?? 0 };
    });
    const held = told.filter(
      ({ said, trueMs }) => said && said.earliestMs <= trueMs + HOUR_MS && trueMs <= (said.latestMs ?? Infinity),
    );
    expect(held.length).toBeGreaterThan(24);
    expect(told.filter(({ said }) => said === undefined)).toEqual([]);
  });
});
