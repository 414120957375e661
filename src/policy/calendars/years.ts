import { DateTime } from 'luxon';
import { DAY_MS } from '../../domain/time/units.ts';

/** Holidays and events that repeat are known within these years; fixed, so that a set means the same on every day. */
export const FIRST_YEAR = 2024;
export const LAST_YEAR = 2050;

/** Days since 1970-01-01 of a date `yyyy-mm-dd`; undefined if there is no such date. */
export function dayOfDate(date: string): number | undefined {
  const at = /^\d{4}-\d{2}-\d{2}$/.test(date) ? DateTime.fromISO(date, { zone: 'utc' }) : undefined;
  return at?.isValid ? at.toMillis() / DAY_MS : undefined;
}

/** Ascending, each once. */
export function sortedDays(days: Iterable<number>): number[] {
  return [...new Set(days)].sort((a, b) => a - b);
}

/** `count` days from `day` on. */
export function daysFrom(day: number, count: number): number[] {
  return Array.from({ length: count }, (_, index) => day + index);
}

/** Days of a calendar, or what is wrong with it. */
export type DaysResult = { ok: true; days: number[] } | { ok: false; message: string };
