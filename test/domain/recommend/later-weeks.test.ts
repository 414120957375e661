import { expect, it } from 'vitest';
import { monthFactors, monthOf } from '../../../src/domain/recommend/later-weeks.ts';

const weeks = (...values: number[]) => values.flatMap((value) => new Array<number>(7).fill(value));

it('a week that loses nearly what another gained makes a month uncertain, not boundless', () => {
  expect(monthFactors(weeks(100, -99.9))).toEqual(monthFactors(weeks(100, 0)));
  const { low, mid, high } = monthOf(weeks(100, -99.9));
  expect([low, high].map((one) => Math.abs(one / mid)).every((times) => times < 10)).toBe(true);
  expect(low).toBeLessThanOrEqual(mid);
  expect(high).toBeGreaterThanOrEqual(mid);
});

it('weeks that never lose vary as they do', () => {
  expect(monthFactors(weeks(100, 100)).high).toBeCloseTo(Math.exp(0.25));
  expect(monthFactors(weeks(100, 0)).high).toBeCloseTo(Math.exp(1) * Math.exp(0.36));
});
