import { describe, expect, it } from 'vitest';
import {
  ACCOUNT_PLANS,
  cuHours,
  cuSeconds,
  DEFAULT_PRICES,
  formatUsd,
  formatUsdRange,
  possibleCuSeconds,
  savedCuSeconds,
} from '../../src/domain/compute/cost.ts';

const baseline = { minCu: 1, maxCu: 4, suspendTimeoutSeconds: 300 };

describe('cost', () => {
  it('is a range: an awake compute uses at least its minimum and at most its maximum', () => {
    expect(cuHours(cuSeconds({ minCu: 0.25, maxCu: 2 }, 7200))).toEqual({ low: 0.5, high: 4 });
  });

  it('counts what an awake compute does not use, and what it uses beyond its baseline', () => {
    expect(savedCuSeconds(baseline, { minCu: 0.25, maxCu: 1, state: 'active' }, 100)).toEqual({ low: 75, high: 300 });
    expect(savedCuSeconds(baseline, { minCu: 2, maxCu: 8, state: 'active' }, 100)).toEqual({ low: -100, high: -400 });
  });

  it('is foreseen from nothing, or from all of the time where the compute never sleeps', () => {
    const foreseen = (maxCu: number, suspendTimeoutSeconds: number) =>
      possibleCuSeconds({ minCu: 2, maxCu, suspendTimeoutSeconds }, 100);
    expect(foreseen(4, 300)).toEqual({ low: 0, high: 400 });
    expect(foreseen(16, 300)).toEqual({ low: 0, high: 1600 });
    expect(foreseen(18, 300)).toEqual({ low: 200, high: 1800 });
    expect(foreseen(4, -1)).toEqual({ low: 200, high: 400 });
  });

  it('of a CU-hour is what the vendor asks for each plan', () => {
    expect(ACCOUNT_PLANS.map((plan) => DEFAULT_PRICES[plan])).toEqual([0, 0.106, 0.222]);
  });

  it('counts sleep as saved only where the baseline would never sleep', () => {
    const asleep = { minCu: 0.25, maxCu: 1, state: 'idle' as const };
    expect(savedCuSeconds(baseline, asleep, 100)).toEqual({ low: 0, high: 0 });
    expect(savedCuSeconds({ ...baseline, suspendTimeoutSeconds: -1 }, asleep, 100)).toEqual({ low: 100, high: 400 });
    // A fixed size above 16 CU never sleeps, whatever its timeout is.
    const large = { minCu: 20, maxCu: 20, suspendTimeoutSeconds: 300 };
    expect(savedCuSeconds(large, asleep, 100)).toEqual({ low: 2000, high: 2000 });
  });
});

describe('an amount of money', () => {
  it.each([
    [1234.5, '$1,234.50'],
    [0.001, '$0.00'],
    [-0.08, '-$0.08'],
    [-0.004, '$0.00'],
    [-1234.567, '-$1,234.57'],
  ])('of %d is written %s', (usd, text) => {
    expect(formatUsd(usd)).toBe(text);
  });

  it.each([
    [1.33, 17.81, '$1.33–17.81'],
    [2, 2.001, '$2.00'],
    [-0.08, 0.2, '-$0.08 to $0.20'],
  ])('between %d and %d is written %s', (low, high, text) => {
    expect(formatUsdRange({ low, high })).toBe(text);
  });
});
