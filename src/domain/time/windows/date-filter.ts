import { getOrAdd } from '../../grouping.ts';
import { lowerBound } from '../../sorted.ts';
import { sum } from '../../sum.ts';
import type { Calendar, DateFilter, TimeSpec } from '../time-spec.ts';

/** A date filter prepared for fast look-ups, with its calendars combined. */
interface PreparedFilter {
  /** The days of `only` that are not excepted, ascending; undefined without `only`. */
  allowed: readonly number[] | undefined;
  /** Stretches of excepted days by their first and last days, ascending. */
  excepted: { firstDays: readonly number[]; lastDays: readonly number[] };
  /** The maximum number of days that a search for an opening skips in a row. */
  maxSkippedDays: number;
  /** Cached allowed days by block. */
  blocks: Map<number, number>;
}

/** The maximum number of days that one search examines; if calendars exclude more, it returns how far it got. */
export const MAX_DAYS_SEARCHED = 100;
/** The number of days in one block, which are bits of a number. */
export const BLOCK_DAYS = 32;
const MAX_BLOCKS_CACHED = 1000;

const preparedFilters = new WeakMap<DateFilter, PreparedFilter>();
/** Prepared filters by first calendar and key: windows with the same calendars share them. */
const byCalendars = new WeakMap<Calendar, Map<string, PreparedFilter>>();
const calendarNumbers = new WeakMap<Calendar, number>();
let calendarsNumbered = 0;

/** True if a window may start on a local date, given as days since 1970-01-01. */
export function allowsDay(filter: DateFilter | undefined, localDay: number): boolean {
  if (!filter) return true;
  const block = Math.floor(localDay / BLOCK_DAYS);
  return ((allowedDays(filter, block) >>> (localDay - block * BLOCK_DAYS)) & 1) === 1;
}

/** The days of a block on which a window may start, as bits; bit 0 is the first day. Shared by windows with the same calendars. */
export function allowedDays(filter: DateFilter, block: number): number {
  const prepared = preparedFilter(filter);
  return prepared.blocks.get(block) ?? readBlock(prepared, block);
}

function readBlock(filter: PreparedFilter, block: number): number {
  const firstDay = block * BLOCK_DAYS;
  let days = 0;
  for (let day = nearestIn(filter, firstDay, 'next'); day !== undefined && day < firstDay + BLOCK_DAYS; ) {
    days |= 1 << (day - firstDay);
    day = nearestIn(filter, day + 1, 'next');
  }
  if (filter.blocks.size >= MAX_BLOCKS_CACHED) filter.blocks.clear();
  filter.blocks.set(block, days);
  return days;
}

/** The nearest allowed day: `day` itself, or a later (`next`) or earlier (`prev`) one; undefined if there is none. */
export function nearestAllowedDay(
  filter: DateFilter | undefined,
  day: number,
  direction: 'next' | 'prev',
): number | undefined {
  return filter ? nearestIn(preparedFilter(filter), day, direction) : day;
}

function nearestIn({ allowed, excepted }: PreparedFilter, day: number, direction: 'next' | 'prev'): number | undefined {
  if (allowed) return allowed[direction === 'next' ? lowerBound(allowed, day) : lowerBound(allowed, day + 1) - 1];
  const { firstDays, lastDays } = excepted;
  const index = lowerBound(lastDays, day);
  const [firstDay = Number.POSITIVE_INFINITY, lastDay = day] = [firstDays[index], lastDays[index]];
  if (firstDay > day) return day;
  return direction === 'next' ? lastDay + 1 : firstDay - 1;
}

/** The maximum number of days that a search for an opening skips in a row; small if excepted days are scattered. */
export function maxSkippedDays(filter: DateFilter | undefined): number {
  return filter ? preparedFilter(filter).maxSkippedDays : 0;
}

/** Prepares the dates of a window before its first use: thousands of days take milliseconds. */
export function prepareDates(spec: TimeSpec): void {
  if ('dates' in spec && spec.dates) preparedFilter(spec.dates);
}

/** A key for the calendars of a time, and the total number of their days. */
export function calendarsOf(spec: TimeSpec): { key: string; days: number } {
  const filter: DateFilter = ('dates' in spec && spec.dates) || {};
  const { only = [], except = [] } = filter;
  return { key: keyOf(filter), days: sum([...only, ...except].map((calendar) => calendar.days.length)) };
}

function preparedFilter(filter: DateFilter): PreparedFilter {
  const found = preparedFilters.get(filter);
  if (found) return found;
  const prepared = sharedFilter(filter);
  preparedFilters.set(filter, prepared);
  return prepared;
}

function sharedFilter(filter: DateFilter): PreparedFilter {
  const { only, except = [] } = filter;
  const first = only?.[0] ?? except[0];
  if (!first) return prepareFilter(filter);
  const shared = getOrAdd(byCalendars, first, () => new Map<string, PreparedFilter>());
  return getOrAdd(shared, keyOf(filter), () => prepareFilter(filter));
}

function keyOf({ only, except = [] }: DateFilter): string {
  return `${only?.map(numberOf).join()} ${except.map(numberOf).join()}`;
}

function numberOf(calendar: Calendar): number {
  const found = calendarNumbers.get(calendar);
  if (found !== undefined) return found;
  calendarsNumbered += 1;
  calendarNumbers.set(calendar, calendarsNumbered);
  return calendarsNumbered;
}

function prepareFilter({ only, except = [] }: DateFilter): PreparedFilter {
  const days = daysOf(except);
  const excepted = stretchesOf(days);
  const withoutOnly = {
    allowed: undefined,
    excepted,
    maxSkippedDays: longestSeries(days),
    blocks: new Map<number, number>(),
  };
  if (!only) return withoutOnly;
  const allowed = daysOf(only).filter((day) => nearestIn(withoutOnly, day, 'next') === day);
  return { ...withoutOnly, allowed, maxSkippedDays: Math.min(allowed.length, MAX_DAYS_SEARCHED) };
}

/** The longest series of days that are at most a week apart, since windows recur weekly. */
function longestSeries(days: readonly number[]): number {
  let [longest, length] = [0, 0];
  for (const [index, day] of days.entries()) {
    length = day - (days[index - 1] ?? Number.NEGATIVE_INFINITY) > 7 ? 1 : length + 1;
    longest = Math.max(longest, length);
  }
  return Math.min(longest, MAX_DAYS_SEARCHED);
}

/** The days of all calendars, ascending and unique. */
function daysOf(calendars: readonly Calendar[]): number[] {
  const [first, ...others] = calendars.map(({ days }) => days);
  if (first && others.length === 0) return [...first];
  return [...new Set(calendars.flatMap(({ days }) => days))].sort((a, b) => a - b);
}

/** Groups consecutive days, so that a long holiday is skipped in one step. */
function stretchesOf(days: readonly number[]): PreparedFilter['excepted'] {
  return {
    firstDays: days.filter((day, index) => days[index - 1] !== day - 1),
    lastDays: days.filter((day, index) => days[index + 1] !== day + 1),
  };
}
