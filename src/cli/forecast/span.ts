import { DateTime } from 'luxon';
import { joinRange } from '../../domain/compute/cost.ts';
import type { Range } from '../../domain/estimate.ts';
import type { Span } from '../../domain/time/span.ts';
import { UserError } from '../fail.ts';

export interface SpanFlags {
  days?: string | undefined;
  from?: string | undefined;
  to?: string | undefined;
}

const DEFAULT_DAYS = 7;
const MAX_DAYS = 366;
const INSTANT_FORM = 'write 2026-03-02, 2026-03-02T08:00 or 2026-03-02T08:00:00Z';

/** The span of the flags. It starts at `--from`, by default with this minute, and ends at `--to`, or `--days` later. */
export function readSpan({ days, from, to }: SpanFlags, { zone, nowMs }: { zone: string; nowMs: number }): Span {
  if (days !== undefined && to !== undefined) {
    throw new UserError('--days and --to both say where it ends; leave one of them out');
  }
  const start =
    from === undefined ? DateTime.fromMillis(nowMs, { zone }).startOf('minute') : readInstant('--from', from, zone);
  const end = to === undefined ? start.plus({ days: readDays(days) }) : readInstant('--to', to, zone);
  if (end <= start) throw new UserError(`--to: ${end.toISO()} is not after ${start.toISO()}, where it starts`);
  if (end > start.plus({ days: MAX_DAYS })) {
    throw new UserError(`--to: ${end.toISO()} is more than ${MAX_DAYS} days after ${start.toISO()}; ask for less`);
  }
  return { fromMs: start.toMillis(), toMs: end.toMillis() };
}

function readDays(text: string | undefined): number {
  if (text === undefined) return DEFAULT_DAYS;
  const days = /^\d{1,3}$/.test(text) ? Number(text) : 0;
  if (days >= 1 && days <= MAX_DAYS) return days;
  throw new UserError(`--days: "${text}" is not a whole number from 1 to ${MAX_DAYS}`);
}

/** An ISO instant; without an offset it is local time of the zone, and a date alone is its midnight. */
function readInstant(flag: string, text: string, zone: string): DateTime {
  const instant = DateTime.fromISO(text, { zone });
  if (!/^\d{4}-\d\d-\d\d/.test(text) || !instant.isValid) {
    throw new UserError(`${flag}: "${text}" is not an ISO instant; ${INSTANT_FORM}`);
  }
  return instant.setZone(zone);
}

/** The instant of `--at`, milliseconds since the epoch; without an offset it is UTC. */
export function readAt(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const instant = DateTime.fromISO(text, { zone: 'utc' });
  if (instant.isValid) return instant.toMillis();
  throw new UserError(`--at: ${text} is not an instant; write for example 2026-03-02T08:00:00+01:00`);
}

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
export function formatHours({ low, high }: Range): string {
  return joinRange(formatNumber(low), formatNumber(high));
}

/** `+12.5 to +40`, `0`. */
export function formatChange(change: Range, format: (value: number) => string = formatNumber): string {
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
