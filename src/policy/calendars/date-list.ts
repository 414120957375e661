import { type DaysResult, dayOfDate, daysFrom, sortedDays } from './years.ts';

/** Ten years; more is a slip. */
const MOST_DAYS_OF_RANGE = 3660;

/** The days of one entry: a date, or a range of dates of which both ends belong to it. */
export function daysOfEntry(entry: string): DaysResult {
  const [first = '', last = first, ...rest] = entry.split('/').map((part) => part.trim());
  const from = dayOfDate(first);
  const to = dayOfDate(last);
  if (from === undefined || to === undefined || rest.length > 0) {
    return { ok: false, message: 'expected a date such as 2026-12-24, or a range such as 2026-12-28/2026-12-31' };
  }
  if (to < from) return { ok: false, message: 'the range ends before it has begun' };
  if (to - from >= MOST_DAYS_OF_RANGE) return { ok: false, message: 'a range has at most ten years' };
  return { ok: true, days: sortedDays(daysFrom(from, to - from + 1)) };
}
