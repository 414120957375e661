import { expect, it } from 'vitest';
import { changeText, monthChange, monthCuHoursChange } from '../../../src/cli/forecast/month.ts';
import type { Outlook } from '../../../src/cli/forecast/outlook.ts';

const WEEK = { fromMs: 0, toMs: 168 * 3_600_000 };
const outlooks = (low: number, mid: number, high: number) =>
  [{ expected: { low, mid, high } }] as unknown as readonly Outlook[];

it('what a change saves a month is told in CU-hours where no price is known', () => {
  const [before, after] = [outlooks(168, 168, 168), outlooks(0, 84, 168)];
  expect(monthChange(before, after, WEEK)).toBeUndefined();
  const change = monthCuHoursChange(before, after, WEEK);
  expect(change).toEqual({ low: -730, mid: -365, high: 0 });
  expect(change && changeText(change, (value) => `${value} CU-hours`)).toBe(
    'saves 365 CU-hours a month (0 CU-hours to 730 CU-hours)',
  );
});
