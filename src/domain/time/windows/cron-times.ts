import { CronExpressionParser, type CronFieldCollection } from 'cron-parser';
import { lowerBound } from '../../sorted.ts';
import type { DateFilter } from '../time-spec.ts';
import { allowsDay, nearestAllowedDay } from './date-filter.ts';
import { weekdayOf } from './local-time.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
/** `0 0 29 2 *` may rest for eight years; what rests longer does not fire. */
const MOST_DAYS = 8 * 366;
/** On which days an expression fires is found for so many days at once. */
const BLOCK_DAYS = 512;
const MOST_BLOCKS_KEPT = 20;
/** Those of two sets, the one that counts and the one that is read. */
const MOST_CRONS_KEPT = 5000;

/** At which minutes of a day an expression fires. */
interface FiringsOfDay {
  firstMinute: number;
  lastMinute: number;
  longestPauseMinutes: number;
  /** Also from the last firing of a day to the first of the next. */
  shortestPauseMinutes: number;
  count: number;
  /** The hour is a number, a list or a range, without a wildcard or a step. */
  hasFixedHour: boolean;
}

/** An expression taken apart: on which dates it fires, and at which minutes of such a date. */
interface CronTimes {
  /** Ascending, at least one. */
  minutesOfDay: number[];
  ofDay: FiringsOfDay;
  firesOn: FiresOn;
  /** On all dates. */
  knownBlocks: FiringDays;
  /** On those that a filter allows. */
  filteredBlocks: WeakMap<DateFilter, FiringDays>;
}

/** The days on which an expression fires, ascending, in days since 1970-01-01, for each block of days that was asked about. */
type FiringDays = Map<number, readonly number[]>;

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
  let day = nearestFiringDay(times, dates, fromDay, direction);
  while (day !== undefined) {
    const minute = nearestMinute(times.minutesOfDay, (fromMs - day * DAY_MS) / MINUTE_MS, direction);
    if (minute !== undefined) return day * DAY_MS + minute * MINUTE_MS;
    day = nearestFiringDay(times, dates, day + step, direction);
  }
  return undefined;
}

/** Most days are passed unseen: an expression of leap days fires on none of a thousand. */
function nearestFiringDay(
  times: CronTimes,
  dates: DateFilter | undefined,
  day: number,
  direction: 'next' | 'prev',
): number | undefined {
  let from = day;
  for (let passed = 0; passed <= MOST_DAYS / BLOCK_DAYS + 1; passed += 1) {
    const allowed = nearestAllowedDay(dates, from, direction);
    if (allowed === undefined || Math.abs(allowed - day) > MOST_DAYS) return undefined;
    const block = Math.floor(allowed / BLOCK_DAYS);
    const days = daysOfBlock(times, dates, block);
    const found = direction === 'next' ? days[lowerBound(days, allowed)] : days[lowerBound(days, allowed + 1) - 1];
    if (found !== undefined) return found;
    from = direction === 'next' ? (block + 1) * BLOCK_DAYS : block * BLOCK_DAYS - 1;
  }
  return undefined;
}

function nearestMinute(minutesOfDay: readonly number[], from: number, direction: 'next' | 'prev') {
  if (direction === 'next') return minutesOfDay[lowerBound(minutesOfDay, from)];
  return minutesOfDay[lowerBound(minutesOfDay, Math.floor(from) + 1) - 1];
}

/** The firings of a day, as minutes of it. */
export function firingsOfDay(cron: string): FiringsOfDay {
  return timesOf(cron).ofDay;
}

/** True if there is a minute of the day at which both expressions may fire. */
export function haveCommonFiring(cron: string, other: string): boolean {
  const minutes = new Set(timesOf(cron).minutesOfDay);
  return timesOf(other).minutesOfDay.some((minute) => minutes.has(minute));
}

function daysOfBlock(times: CronTimes, dates: DateFilter | undefined, block: number): readonly number[] {
  const { firesOn, knownBlocks, filteredBlocks } = times;
  const blocks = dates ? (filteredBlocks.get(dates) ?? new Map<number, readonly number[]>()) : knownBlocks;
  const kept = blocks.get(block);
  if (kept) return kept;
  const days = dates
    ? daysOfBlock(times, undefined, block).filter((day) => allowsDay(dates, day))
    : Array.from({ length: BLOCK_DAYS }, (_, index) => block * BLOCK_DAYS + index).filter(firesOn);
  if (blocks.size >= MOST_BLOCKS_KEPT) blocks.clear();
  blocks.set(block, days);
  if (dates) filteredBlocks.set(dates, blocks);
  return days;
}

function timesOf(cron: string): CronTimes {
  const kept = known.get(cron);
  if (kept) return kept;
  if (known.size >= MOST_CRONS_KEPT) known.clear();
  // In UTC, where no clock ever changes: changes of the clocks follow the rules of the language, not those of cron-parser.
  const { fields } = CronExpressionParser.parse(cron, { tz: 'UTC', currentDate: 0 });
  const { hour, minute } = fields;
  const minutesOfDay = hour.values.flatMap((h) => minute.values.map((m) => h * 60 + m)).sort((a, b) => a - b);
  const pauses = minutesOfDay.map((minute, index) => minute - (minutesOfDay[index - 1] ?? minute));
  const ofDay = {
    firstMinute: minutesOfDay[0] ?? 0,
    lastMinute: minutesOfDay.at(-1) ?? 0,
    longestPauseMinutes: Math.max(...pauses),
    shortestPauseMinutes: Math.min(...pauses.slice(1), (minutesOfDay[0] ?? 0) + 1440 - (minutesOfDay.at(-1) ?? 0)),
    count: minutesOfDay.length,
    hasFixedHour: !/[*/]/.test(cron.split(' ')[1] ?? '*'),
  };
  const times: CronTimes = {
    ...{ minutesOfDay, ofDay, firesOn: cronDays(fields) },
    ...{ knownBlocks: new Map(), filteredBlocks: new WeakMap() },
  };
  known.set(cron, times);
  return times;
}

/** On which dates an expression fires: it depends on nothing but the month, the date and the day of the week. */
type FiresOn = (localDay: number) => boolean;

/** The rules of cron-parser for dates, without asking it for each one, which takes some 20 µs. */
export function cronDays({ month, dayOfMonth, dayOfWeek }: CronFieldCollection): FiresOn {
  const months = new Set<number>(month.values);
  const dates = new Set<unknown>(dayOfMonth.values);
  const weekdays = new Set<unknown>(dayOfWeek.values);
  const lastWeekdays = new Set(dayOfWeek.values.map((value) => Number.parseInt(String(value), 10) % 7));
  const { nthDay } = dayOfWeek;
  const matchesDate = (date: number, isLast: boolean) => dates.has(date) || (dayOfMonth.hasLastChar && isLast);
  const matchesWeekday = (weekday: number, date: number, isLastWeek: boolean) =>
    (weekdays.has(weekday) && (nthDay <= 0 || Math.ceil(date / 7) === nthDay)) ||
    (dayOfWeek.hasLastChar && isLastWeek && lastWeekdays.has(weekday));
  return (localDay) => {
    const { month: ofYear, date } = dateOf(localDay);
    if (!months.has(ofYear)) return false;
    const byDate = () => matchesDate(date, dateOf(localDay + 1).date === 1);
    const byWeekday = () => matchesWeekday(weekdayOf(localDay) % 7, date, dateOf(localDay + 7).month !== ofYear);
    if (dayOfMonth.isWildcard) return dayOfWeek.isWildcard || byWeekday();
    return byDate() || (!dayOfWeek.isWildcard && byWeekday());
  };
}

/** Month (1..12) and day of a date, given as days since 1970-01-01. Source: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms". */
function dateOf(localDay: number): { month: number; date: number } {
  const { floor } = Math;
  const dayOfEra = (((localDay + 719_468) % 146_097) + 146_097) % 146_097;
  const leapDays = floor(dayOfEra / 1460) - floor(dayOfEra / 36_524) + floor(dayOfEra / 146_096);
  const yearOfEra = floor((dayOfEra - leapDays) / 365);
  // Years begin in March, so that a leap day is the last.
  const dayOfYear = dayOfEra - (365 * yearOfEra + floor(yearOfEra / 4) - floor(yearOfEra / 100));
  const month = floor((5 * dayOfYear + 2) / 153);
  return { month: month < 10 ? month + 3 : month - 9, date: dayOfYear - floor((153 * month + 2) / 5) + 1 };
}
