import { joinRange } from '../domain/compute/cost.ts';
import type { Range } from '../domain/estimate.ts';

export function sumOf<T>(all: readonly T[], rangeOf: (one: T) => Range): Range {
  const sum = { low: 0, high: 0 };
  for (const one of all) {
    const { low, high } = rangeOf(one);
    sum.low += low;
    sum.high += high;
  }
  return sum;
}

/** Negative where `after` is less. */
export function differenceOf(after: Range, before: Range): Range {
  return { low: after.low - before.low, high: after.high - before.high };
}

export function times({ low, high }: Range, factor: number): Range {
  return { low: low * factor, high: high * factor };
}

/** For example `12.5–168`. */
export function formatRange({ low, high }: Range): string {
  return joinRange(formatNumber(low), formatNumber(high));
}

/** `+12.5 to +40`, `0`. */
export function formatRangeChange(change: Range, format: (value: number) => string = formatNumber): string {
  const low = signed(Math.min(change.low, change.high), format);
  const high = signed(Math.max(change.low, change.high), format);
  return low === high ? low : `${low} to ${high}`;
}

export function formatNumber(value: number): string {
  return value.toLocaleString('en', { maximumFractionDigits: Math.abs(value) < 1000 ? 1 : 0, signDisplay: 'negative' });
}

function signed(value: number, format: (value: number) => string): string {
  const text = format(Math.abs(value));
  if (!/[1-9]/.test(text)) return text;
  return `${value < 0 ? '−' : '+'}${text}`;
}
