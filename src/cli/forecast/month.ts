import { formatUsd } from '../../domain/compute/cost.ts';
import { type Estimate, mapEstimate, sumEstimates } from '../../domain/estimate.ts';
import { coveringUse, NOTHING, plus, type Saving, savingBetween, times } from '../../domain/recommend/saving.ts';
import { roundTo } from '../../domain/sum.ts';
import { formatNumber } from '../ranges.ts';
import { expectedOf, type Outlook } from './outlook.ts';
import type { PastOutlook } from './past-outlook.ts';

interface ExpectedSum {
  computes: number;
  /** CU-hours of the span of the forecast. */
  cuHours: Estimate;
  /** A month's measured usage, and what these policies save of it. */
  month: Saving['month'];
}

/** Undefined if no compute has usage. */
export function sumExpected(outlooks: readonly Outlook[]): ExpectedSum | undefined {
  const measured = outlooks.filter((outlook) => outlook.profile && outlook.month());
  if (measured.length === 0) return undefined;
  const cuHours = sumEstimates(measured.flatMap((outlook) => expectedOf(outlook) ?? []));
  const months = measured.flatMap((outlook) => outlook.month() ?? []);
  return { computes: measured.length, cuHours, month: monthSum(months, months) };
}

/**
 * Adds up months. With little data a saving may exceed the usage of its month: the usage is then raised to it, and to the saving of the same
 * compute in `others`.
 */
function monthSum(months: readonly Saving['month'][], others: readonly Saving['month'][]): Saving['month'] {
  const sum = { used: NOTHING, saved: NOTHING };
  for (const [index, month] of months.entries()) {
    sum.used = plus(sum.used, coveringUse(month, others[index]?.saved));
    sum.saved = plus(sum.saved, month.saved);
  }
  return sum;
}

/** The cost of a month: the measured usage less the saving. */
function remainingCost({ used, saved }: Saving['month']): Estimate | undefined {
  if (!used.usd || !saved.usd) return undefined;
  const { low, mid, high } = saved.usd;
  return { low: used.usd.mid - high, mid: used.usd.mid - mid, high: used.usd.mid - low };
}

/** Such as `Expected: 120 CU-hours (100 to 140), $98.00 a month ($81.00 to $114.00)`. For an unknown part it says why. */
export function expectedLine(outlooks: readonly Outlook[]): string {
  const sum = sumExpected(outlooks);
  if (!sum)
    return 'Expected: no usage data, so from always asleep to always awake (ebb run collects it, --usage reads it).';
  const { cuHours, month, computes } = sum;
  const usdMonth = remainingCost(month);
  const part = computes < outlooks.length ? ` of the ${computes} of ${outlooks.length} computes with usage data` : '';
  const dollars = usdMonth
    ? `, ${formatUsd(usdMonth.mid)} a month (${formatUsd(usdMonth.low)} to ${formatUsd(usdMonth.high)})`
    : ', price unknown: set plan: in ebb.yaml';
  return `Expected${part}: ${formatNumber(cuHours.mid)} CU-hours (${formatNumber(cuHours.low)} to ${formatNumber(cuHours.high)})${dollars}; an estimate from past usage.`;
}

export interface MonthChange {
  /** The number of computes with a known past. */
  computes: number;
  /** CU-hours saved. */
  cuHours: Estimate;
  usd?: { saved: Estimate; old: Estimate; new: Estimate };
}

/** The monthly saving of a change from `before` to `after`, lists of the same computes. Undefined if no compute has a known past. */
export function monthChange(before: readonly PastOutlook[], after: readonly PastOutlook[]): MonthChange | undefined {
  const known = after.flatMap((outlook, index) => {
    const was = before[index]?.month();
    const month = was && outlook.month();
    return month ? [{ was, month }] : [];
  });
  if (known.length === 0) return undefined;
  let saved = NOTHING;
  for (const { was, month } of known) saved = plus(saved, savingBetween(was.saved, month.saved));
  const [old, changed] = [known.map(({ was }) => was), known.map(({ month }) => month)];
  const [oldUsd, newUsd] = [remainingCost(monthSum(old, changed)), remainingCost(monthSum(changed, old))];
  return {
    computes: known.length,
    cuHours: times(saved, 1 / 3600).cuSeconds,
    ...(saved.usd && oldUsd && newUsd && { usd: { saved: saved.usd, old: oldUsd, new: newUsd } }),
  };
}

/** `saves $12.00 a month ($10.00 to $14.00)`, or its cost. */
export function savedText({ low, mid, high }: Estimate, format: (value: number) => string = formatUsd): string {
  if (low === 0 && high === 0) return 'changes nothing of the expected cost';
  const sign = mid >= 0 ? 1 : -1;
  const ends = [low * sign, high * sign].sort((a, b) => a - b).map((value) => signed(value, format));
  return `${mid >= 0 ? 'saves' : 'costs'} ${format(Math.abs(mid))} a month (${ends.join(' to ')})`;
}

function signed(value: number, format: (value: number) => string): string {
  return value < 0 ? `−${format(-value)}` : format(value);
}

export function expectedJson(expected: Estimate | null) {
  if (!expected) return null;
  return { ...mapEstimate(expected, (value) => roundTo(value, 4)), figure: 'estimate' };
}
