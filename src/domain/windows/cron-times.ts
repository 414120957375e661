import { type CronExpression, CronExpressionParser } from 'cron-parser';
import { DateTime } from 'luxon';
import type { DateFilter } from '../time-spec.ts';
import { nearestAllowedDay } from './date-filter.ts';
import { lowerBound } from './lower-bound.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
/** `0 0 29 2 *` may rest for eight years; what rests longer does not fire. */
const MOST_DAYS = 8 * 366;
const MOST_DAYS_KEPT = 20_000;
const MOST_CRONS_KEPT = 1000;

/** An expression taken apart: on which dates it fires, and at which minutes of such a date. */
interface CronTimes {
  /** Ascending, at least one. */
  minutesOfDay: number[];
  /** The longest pause between two firings of one day. */
  longestPauseMinutes: number;
  expression: CronExpression;
  /** What cron-parser said about a date, in days since 1970-01-01: asking it costs some 20 µs. */
  knownDays: Map<number, boolean>;
}

const known = new Map<string, CronTimes>();

/**
 * The nearest local time at which an expression fires on an allowed date: at or after `fromMs`, or at or before it.
 * Local times are milliseconds since the epoch as they would be in UTC. Undefined: it does not fire for years.
 */
export function nearestLocalTime(
  { cron, dates }: { cron: string; dates?: DateFilter },
  fromMs: number,
  direction: 'next' | 'prev',
): number | undefined {
  const times = timesOf(cron);
  const step = direction === 'next' ? 1 : -1;
  const fromDay = Math.floor(fromMs / DAY_MS);
  let day = nearestAllowedDay(dates, fromDay, direction);
  while (day !== undefined && Math.abs(day - fromDay) <= MOST_DAYS) {
    const fromMinute = (fromMs - day * DAY_MS) / MINUTE_MS;
    const minute = firesOn(times, day) ? nearestMinute(times.minutesOfDay, fromMinute, direction) : undefined;
    if (minute !== undefined) return day * DAY_MS + minute * MINUTE_MS;
    day = nearestAllowedDay(dates, day + step, direction);
  }
  return undefined;
}

function nearestMinute(minutesOfDay: readonly number[], from: number, direction: 'next' | 'prev') {
  if (direction === 'next') return minutesOfDay[lowerBound(minutesOfDay, from)];
  return minutesOfDay[lowerBound(minutesOfDay, Math.floor(from) + 1) - 1];
}

/** The firings of a day, as minutes of it. */
export function firingsOfDay(cron: string): { firstMinute: number; lastMinute: number; longestPauseMinutes: number } {
  const { minutesOfDay, longestPauseMinutes } = timesOf(cron);
  return { firstMinute: minutesOfDay[0] ?? 0, lastMinute: minutesOfDay.at(-1) ?? 0, longestPauseMinutes };
}

function firesOn(times: CronTimes, day: number): boolean {
  const kept = times.knownDays.get(day);
  if (kept !== undefined) return kept;
  if (times.knownDays.size >= MOST_DAYS_KEPT) times.knownDays.clear();
  const atMs = day * DAY_MS + (times.minutesOfDay[0] ?? 0) * MINUTE_MS;
  const fires = times.expression.includesDate(DateTime.fromMillis(atMs, { zone: 'utc' }).toJSDate());
  times.knownDays.set(day, fires);
  return fires;
}

function timesOf(cron: string): CronTimes {
  const kept = known.get(cron);
  if (kept) return kept;
  if (known.size >= MOST_CRONS_KEPT) known.clear();
  // In UTC, where no clock ever changes: changes of the clocks follow the rules of the language, not those of cron-parser.
  const expression = CronExpressionParser.parse(cron, { tz: 'UTC', currentDate: 0 });
  const { hour, minute } = expression.fields;
  const minutesOfDay = hour.values.flatMap((h) => minute.values.map((m) => h * 60 + m)).sort((a, b) => a - b);
  const pauses = minutesOfDay.map((minute, index) => minute - (minutesOfDay[index - 1] ?? minute));
  const longestPauseMinutes = Math.max(...pauses);
  const times = { minutesOfDay, longestPauseMinutes, expression, knownDays: new Map<number, boolean>() };
  known.set(cron, times);
  return times;
}
