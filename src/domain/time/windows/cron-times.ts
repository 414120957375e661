import { CronExpressionParser, type CronFieldCollection } from 'cron-parser';
import { lowerBound } from '../../sorted.ts';
import type { DateFilter } from '../time-spec.ts';
import { DAY_MINUTES, DAY_MS, MINUTE_MS } from '../units.ts';
import { allowedDays, BLOCK_DAYS, nearestAllowedDay } from './date-filter.ts';
import { weekdayOf } from './local-time.ts';

/** `0 0 29 2 *` may pause for eight years; an expression with a longer pause never fires. */
const MAX_BLOCKS = Math.ceil((8 * 366) / BLOCK_DAYS);
/** Enough for two policy sets: the active one and one that is being loaded. */
const MAX_CRONS_CACHED = 20_000;
const MAX_BLOCKS_CACHED = 500;

/** The minutes of a day at which an expression fires, summarised. */
interface FiringsOfDay {
  firstMinute: number;
  lastMinute: number;
  longestPauseMinutes: number;
  /** Unlike the longest pause, may be the one from the last firing of a day to the first of the next. */
  shortestPauseMinutes: number;
  count: number;
  /** True if the hour is a number, a list or a range, without a wildcard or a step. */
  hasFixedHour: boolean;
}

/** A parsed expression: the dates, hours and minutes at which it fires. */
interface CronTimes {
  /** Ascending, at least one. */
  hours: readonly number[];
  /** Ascending, at least one. */
  minutes: readonly number[];
  ofDay: FiringsOfDay;
  firesOn: DaysOfMonth;
  /** Cached firing days by block. */
  blocks: Map<number, number>;
}

const timesCache = new Map<string, CronTimes>();

/**
 * The nearest local time at which an expression fires on an allowed date: at or after `fromMs` (`next`), or at or before it (`prev`). Undefined
 * if it does not fire for eight years. Local times are milliseconds since the epoch, as if in UTC.
 */
export function nearestLocalTime(
  { cron, dates }: { cron: string; dates?: DateFilter },
  fromMs: number,
  direction: 'next' | 'prev',
): number | undefined {
  const times = timesOf(cron);
  const fromDay = Math.floor(fromMs / DAY_MS);
  const day = nearestFiringDay(times, dates, fromDay, direction);
  if (day === undefined) return undefined;
  const minute = nearestMinute(times, (fromMs - day * DAY_MS) / MINUTE_MS, direction);
  if (minute !== undefined) return day * DAY_MS + minute * MINUTE_MS;
  const other = nearestFiringDay(times, dates, direction === 'next' ? day + 1 : day - 1, direction);
  if (other === undefined) return undefined;
  return other * DAY_MS + (direction === 'next' ? times.ofDay.firstMinute : times.ofDay.lastMinute) * MINUTE_MS;
}

/** Searches block by block, testing all days of a block at once: for leap days nearly a hundred blocks are empty. */
function nearestFiringDay(
  times: CronTimes,
  dates: DateFilter | undefined,
  day: number,
  direction: 'next' | 'prev',
): number | undefined {
  const from = nearestAllowedDay(dates, day, direction);
  if (from === undefined || Math.abs(from - day) > MAX_BLOCKS * BLOCK_DAYS) return undefined;
  let block = Math.floor(from / BLOCK_DAYS);
  const bit = from - block * BLOCK_DAYS;
  let days = firingDays(times, block, dates) & (direction === 'next' ? -1 << bit : -1 >>> (BLOCK_DAYS - 1 - bit));
  for (let passed = 0; days === 0; passed += 1) {
    if (passed === MAX_BLOCKS) return undefined;
    block += direction === 'next' ? 1 : -1;
    days = firingDays(times, block, dates);
  }
  // The index of the lowest or the highest set bit.
  return (block + 1) * BLOCK_DAYS - 1 - Math.clz32(direction === 'next' ? days & -days : days);
}

function nearestMinute({ hours, minutes }: CronTimes, from: number, direction: 'next' | 'prev'): number | undefined {
  const hour = Math.floor(from / 60);
  const isNext = direction === 'next';
  const index = isNext ? lowerBound(hours, hour) : lowerBound(hours, hour + 1) - 1;
  if (hours[index] === hour) {
    const minuteOfHour = isNext
      ? minutes[lowerBound(minutes, from - hour * 60)]
      : minutes[lowerBound(minutes, Math.floor(from - hour * 60) + 1) - 1];
    if (minuteOfHour !== undefined) return hour * 60 + minuteOfHour;
  }
  const other = hours[hours[index] === hour ? index + (isNext ? 1 : -1) : index];
  return other === undefined ? undefined : other * 60 + ((isNext ? minutes[0] : minutes.at(-1)) ?? 0);
}

/** The firings of an expression on a day on which it fires. */
export function firingsOfDay(cron: string): FiringsOfDay {
  return timesOf(cron).ofDay;
}

/** True if there is a minute of the day at which both expressions may fire. */
export function haveCommonFiring(cron: string, other: string): boolean {
  const [a, b] = [timesOf(cron), timesOf(other)];
  return a.hours.some((hour) => b.hours.includes(hour)) && a.minutes.some((minute) => b.minutes.includes(minute));
}

/** The days of a block on which an expression fires, as bits; bit 0 is the first day. */
function firingDays(times: CronTimes, block: number, dates?: DateFilter): number {
  const days = times.blocks.get(block) ?? addBlock(times, block);
  return dates && days !== 0 ? days & allowedDays(dates, block) : days;
}

function addBlock({ firesOn, blocks }: CronTimes, block: number): number {
  const firstDay = block * BLOCK_DAYS;
  let days = 0;
  for (let month = monthOf(firstDay); firstDayOf(month) < firstDay + BLOCK_DAYS; month += 1) {
    const offset = firstDayOf(month) - firstDay;
    days |= offset < 0 ? firesOn(month) >>> -offset : firesOn(month) << offset;
  }
  if (blocks.size >= MAX_BLOCKS_CACHED) blocks.clear();
  blocks.set(block, days);
  return days;
}

function timesOf(cron: string): CronTimes {
  const cached = timesCache.get(cron);
  if (cached) return cached;
  if (timesCache.size >= MAX_CRONS_CACHED) timesCache.clear();
  // Parsed in UTC, since changes of the clocks follow ebb's rules, not those of cron-parser.
  const { fields } = CronExpressionParser.parse(cron, { tz: 'UTC', currentDate: 0 });
  const [hours, minutes] = [fields.hour.values, fields.minute.values].map((values) =>
    values.map(Number).sort((a, b) => a - b),
  ) as [number[], number[]];
  const minutesOfDay = hours.flatMap((hour) => minutes.map((minute) => hour * 60 + minute));
  const pauses = minutesOfDay.map((minute, index) => minute - (minutesOfDay[index - 1] ?? minute));
  const ofDay = {
    firstMinute: minutesOfDay[0] ?? 0,
    lastMinute: minutesOfDay.at(-1) ?? 0,
    longestPauseMinutes: Math.max(...pauses),
    shortestPauseMinutes: Math.min(
      ...pauses.slice(1),
      (minutesOfDay[0] ?? 0) + DAY_MINUTES - (minutesOfDay.at(-1) ?? 0),
    ),
    count: minutesOfDay.length,
    hasFixedHour: !/[*/]/.test(cron.split(' ')[1] ?? '*'),
  };
  const times: CronTimes = { hours, minutes, ofDay, firesOn: daysOfMonths(fields), blocks: new Map() };
  timesCache.set(cron, times);
  return times;
}

/** Returns the days of a month (counted from January 1970) on which an expression fires, as bits; bit 0 is the first day. */
type DaysOfMonth = (month: number) => number;

/** A bit for every seventh day from the first on. */
const EVERY_WEEK = 0x10204081;

/** Implements the rules of cron-parser for dates, which would take some 20 µs per date. */
export function daysOfMonths({ month, dayOfMonth, dayOfWeek }: CronFieldCollection): DaysOfMonth {
  const months = new Set<number>(month.values);
  const dates = bits(dayOfMonth.values.flatMap((date) => (typeof date === 'number' ? [date - 1] : [])));
  const weekdays = [...new Set(dayOfWeek.values.flatMap((day) => (typeof day === 'number' ? [day % 7] : [])))];
  const lastWeekdays = dayOfWeek.hasLastChar
    ? dayOfWeek.values.map((value) => Number.parseInt(String(value), 10) % 7)
    : [];
  const lastDate = dayOfMonth.hasLastChar ? 1 : 0;
  const everyWeek = dayOfWeek.nthDay > 0 ? 1 << (7 * (dayOfWeek.nthDay - 1)) : EVERY_WEEK;
  return (index) => {
    if (!months.has((((index % 12) + 12) % 12) + 1)) return 0;
    const firstDay = firstDayOf(index);
    const length = firstDayOf(index + 1) - firstDay;
    const all = 2 ** length - 1;
    if (dayOfMonth.isWildcard && dayOfWeek.isWildcard) return all;
    let days = dayOfMonth.isWildcard ? 0 : dates | (lastDate << (length - 1));
    if (dayOfWeek.isWildcard) return days & all;
    const firstWeekday = weekdayOf(firstDay);
    for (const weekday of weekdays) days |= everyWeek << ((weekday - firstWeekday + 7) % 7);
    for (const weekday of lastWeekdays) days |= 1 << lastSameWeekday((weekday - firstWeekday + 7) % 7, length);
    return days & all;
  };
}

/** The last day of a month that is whole weeks after `first`. */
function lastSameWeekday(first: number, length: number): number {
  return first + 7 * Math.floor((length - 1 - first) / 7);
}

function bits(places: readonly number[]): number {
  return places.reduce((all, place) => all | (1 << place), 0);
}

const { floor } = Math;
/** The days and months of an era of 400 years, after which dates repeat. Years begin in March, so that a leap day is the last. */
const DAYS_OF_ERA = 146_097;
const MONTHS_OF_ERA = 4800;
/** 1 March 0000, in days and in months since January 1970. */
const [MARCH_0000, MARCH_0000_MONTH] = [-719_468, -23_638];

/**
 * The month of a day since 1970-01-01, counted from January 1970. Source: Howard Hinnant, "chrono-Compatible Low-Level Date
 * Algorithms".
 */
export function monthOf(localDay: number): number {
  const era = floor((localDay - MARCH_0000) / DAYS_OF_ERA);
  const day = localDay - MARCH_0000 - era * DAYS_OF_ERA;
  const year = floor((day - floor(day / 1460) + floor(day / 36_524) - floor(day / 146_096)) / 365);
  const dayOfYear = day - (365 * year + floor(year / 4) - floor(year / 100));
  return MARCH_0000_MONTH + era * MONTHS_OF_ERA + 12 * year + floor((5 * dayOfYear + 2) / 153);
}

/** The first day of a month counted from January 1970, in days since 1970-01-01. Source: as above. */
export function firstDayOf(month: number): number {
  const era = floor((month - MARCH_0000_MONTH) / MONTHS_OF_ERA);
  const ofEra = month - MARCH_0000_MONTH - era * MONTHS_OF_ERA;
  const year = floor(ofEra / 12);
  const days = 365 * year + floor(year / 4) - floor(year / 100) + floor((153 * (ofEra % 12) + 2) / 5);
  return MARCH_0000 + era * DAYS_OF_ERA + days;
}
