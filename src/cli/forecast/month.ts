/** The expected usage and monthly cost of computes, as commands show it. */

import { formatUsd } from '../../domain/compute/cost.ts';
import type { Estimate } from '../../domain/forecast/expected.ts';
import type { Span } from '../../domain/forecast/forecast.ts';
import type { Outlook } from './outlook.ts';

/** A month of the vendor's examples, in hours. */
const MONTH_HOURS = 730;

/** Of the computes of which the usage is known, and how many these are. */
export interface ExpectedSum {
  computes: number;
  cuHours: Estimate;
  /** US dollars a month; absent if one of them has no price. */
  usdMonth?: Estimate;
}

/** `Expected: 120 CU-hours (100 to 140), $98.00 a month ($81.00 to $114.00)`; names unknown parts. */
export function sumExpected(outlooks: readonly Outlook[], { fromMs, toMs }: Span): ExpectedSum | undefined {
  const known = outlooks.flatMap(({ expected, price }) => (expected ? [{ expected, price }] : []));
  if (known.length === 0) return undefined;
  const cuHours = { low: 0, mid: 0, high: 0 };
  const usd = { low: 0, mid: 0, high: 0 };
  const months = MONTH_HOURS / ((toMs - fromMs) / 3_600_000);
  for (const { expected, price = 0 } of known) {
    for (const end of ['low', 'mid', 'high'] as const) {
      cuHours[end] += expected[end];
      usd[end] += expected[end] * price * months;
    }
  }
  const isPriced = known.every(({ price }) => price !== undefined);
  return { computes: known.length, cuHours, ...(isPriced && { usdMonth: usd }) };
}

/** `Expected: 120 CU-hours (100 to 140), $98.00 a month ($81.00 to $114.00)`; says what is not known. */
export function expectedLine(outlooks: readonly Outlook[], span: Span): string {
  const sum = sumExpected(outlooks, span);
  if (!sum)
    return 'Expected: no usage data, so from always asleep to always awake (ebb run collects it, --usage reads it).';
  const { cuHours, usdMonth, computes } = sum;
  const hours = (value: number) => value.toLocaleString('en', { maximumFractionDigits: value < 1000 ? 1 : 0 });
  const part = computes < outlooks.length ? ` of the ${computes} of ${outlooks.length} computes with usage data` : '';
  const dollars = usdMonth
    ? `, ${formatUsd(usdMonth.mid)} a month (${formatUsd(usdMonth.low)} to ${formatUsd(usdMonth.high)})`
    : ', price unknown: set plan: in ebb.yaml';
  return `Expected${part}: ${hours(cuHours.mid)} CU-hours (${hours(cuHours.low)} to ${hours(cuHours.high)})${dollars}; an estimate from past usage.`;
}

/** The expected monthly difference of a change over the same computes; undefined where it is unknown. */
export function monthChange(before: readonly Outlook[], after: readonly Outlook[], span: Span) {
  const [old, changed] = [sumExpected(before, span), sumExpected(after, span)];
  if (!old?.usdMonth || !changed?.usdMonth) return undefined;
  return { old: old.usdMonth, new: changed.usdMonth, delta: deltaOf(old.usdMonth, changed.usdMonth) };
}

/** The same in CU-hours, for which no price is needed. */
export function monthCuHoursChange(before: readonly Outlook[], after: readonly Outlook[], span: Span) {
  const [old, changed] = [sumExpected(before, span), sumExpected(after, span)];
  if (!old || !changed) return undefined;
  const months = MONTH_HOURS / ((span.toMs - span.fromMs) / 3_600_000);
  const { low, mid, high } = deltaOf(old.cuHours, changed.cuHours);
  return { low: low * months, mid: mid * months, high: high * months };
}

/** Middle from middle; the ends of both are at the same end together, since both rest on the same unknown. */
function deltaOf(old: Estimate, changed: Estimate): Estimate {
  const ends = [changed.low - old.low, changed.high - old.high];
  return { low: Math.min(...ends), mid: changed.mid - old.mid, high: Math.max(...ends) };
}

/** `saves $12.00 a month ($10.00 to $14.00)`, or its cost. */
export function changeText({ low, mid, high }: Estimate, format: (value: number) => string = formatUsd): string {
  if (low === 0 && high === 0) return 'changes nothing of the expected cost';
  const sign = mid <= 0 ? -1 : 1;
  const ends = [low * sign, high * sign].sort((a, b) => a - b).map((value) => signed(value, format));
  return `${mid <= 0 ? 'saves' : 'costs'} ${format(Math.abs(mid))} a month (${ends.join(' to ')})`;
}

function signed(value: number, format: (value: number) => string): string {
  return value < 0 ? `−${format(-value)}` : format(value);
}

/** Without the noise of floating point; as programs read it. */
export function expectedJson(expected: Estimate | null) {
  if (!expected) return null;
  const [low, mid, high] = [expected.low, expected.mid, expected.high].map((value) => Math.round(value * 1e4) / 1e4);
  return { low, mid, high, figure: 'estimate' };
}
