import type { Weekday } from '../time-spec.ts';
import { offsetChangeBetween, offsetMsAt } from './zone-offset.ts';

const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;
/** More than any zone is ahead of or behind UTC, so that both offsets around a local time are seen. */
const BRACKET_MS = 30 * 3_600_000;

/** Days since 1970-01-01 of the local date in `zone` at an instant. */
export function localDayAt(zone: string, instantMs: number): number {
  return Math.floor((instantMs + offsetMsAt(zone, instantMs)) / DAY_MS);
}

/** The day of the week of a day counted from 1970-01-01, which was a Thursday. */
export function weekdayOf(localDay: number): Weekday {
  return (((((localDay + 3) % 7) + 7) % 7) + 1) as Weekday;
}

/** The instant of a local time: `minute` (0..1440) of the day counted from 1970-01-01. See {@link instantOfLocal}. */
export function instantOfMinute(zone: string, localDay: number, minute: number): number {
  return instantOfLocal(zone, localDay * DAY_MS + minute * MINUTE_MS);
}

/**
 * The instant of a local time, given as the milliseconds since the epoch that it would be in UTC.
 * A time that the clock skips is the first instant after the gap; one that occurs twice is its first occurrence.
 * Both are one rule: the first instant at which the local clock shows this time or a later one.
 */
export function instantOfLocal(zone: string, localMs: number): number {
  const earlierOffsetMs = offsetMsAt(zone, localMs - BRACKET_MS);
  const laterOffsetMs = offsetMsAt(zone, localMs + BRACKET_MS);
  const byEarlierMs = localMs - earlierOffsetMs;
  if (earlierOffsetMs === laterOffsetMs || offsetMsAt(zone, byEarlierMs) === earlierOffsetMs) return byEarlierMs;
  const byLaterMs = localMs - laterOffsetMs;
  if (offsetMsAt(zone, byLaterMs) === laterOffsetMs) return byLaterMs;
  return offsetChangeBetween(zone, localMs - BRACKET_MS, localMs + BRACKET_MS);
}
