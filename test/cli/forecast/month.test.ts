import { expect, it } from 'vitest';
import { monthChange, savedText } from '../../../src/cli/forecast/month.ts';
import type { Outlook } from '../../../src/cli/forecast/outlook.ts';

/** A month of so many CU-hours, of which rules save some. */
function outlooks(low: number, mid: number, high: number) {
  const of = (cuHours: { low: number; mid: number; high: number }) => ({
    cuSeconds: { low: cuHours.low * 3600, mid: cuHours.mid * 3600, high: cuHours.high * 3600 },
    usd: undefined,
  });
  const month = { used: of({ low: 730, mid: 730, high: 730 }), saved: of({ low, mid, high }) };
  return [{ expected: { low: 0, mid: 0, high: 0 }, month: () => month }] as unknown as readonly Outlook[];
}

it('what a change saves a month is told in CU-hours where no price is known', () => {
  const change = monthChange(outlooks(0, 0, 0), outlooks(0, 365, 730));
  expect(change).toEqual({ computes: 1, cuHours: { low: 0, mid: 365, high: 730 } });
  expect(change && savedText(change.cuHours, (value) => `${value} CU-hours`)).toBe(
    'saves 365 CU-hours a month (0 CU-hours to 730 CU-hours)',
  );
});

it('what the old rules saved already is not saved by the change', () => {
  expect(monthChange(outlooks(10, 20, 30), outlooks(10, 20, 30))?.cuHours).toEqual({ low: 0, mid: 0, high: 0 });
  expect(monthChange(outlooks(10, 20, 40), outlooks(50, 70, 100))?.cuHours).toEqual({ low: 40, mid: 50, high: 60 });
});
