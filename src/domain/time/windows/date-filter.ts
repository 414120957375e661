import { lowerBound } from '../../sorted.ts';
import type { Calendar, DateFilter, TimeSpec } from '../time-spec.ts';

/** A filter made ready to be asked often: its calendars as one. */
interface ReadyFilter {
  /** The days that are left of `only`, ascending; undefined where all days are allowed but the excepted ones. */
  allowed: readonly number[] | undefined;
  /** Stretches of excepted days, by their first and last days, both ascending. */
  excepted: { firstDays: readonly number[]; lastDays: readonly number[] };
  /** The most of its days that a search for an opening may skip in a row. */
  mostPassed: number;
  /** For each block of days that was asked about, those that are allowed. */
  blocks: Map<number, number>;
}

/** Days that are looked at for one answer; where calendars leave out more, the answer is how far it came. */
export const MOST_SEARCHED = 100;
/** Days in one block, as the bits of a number. */
export const BLOCK_DAYS = 32;
const MOST_BLOCKS_KEPT = 1000;

const ready = new WeakMap<DateFilter, ReadyFilter>();
/** Windows with the same calendars share the prepared filter; by the first calendar. */
const byCalendars = new WeakMap<Calendar, Map<string, ReadyFilter>>();
const numbers = new WeakMap<Calendar, number>();
let calendarsSeen = 0;

/** True if a window may start on a local date, given as days since 1970-01-01. */
export function allowsDay(filter: DateFilter | undefined, localDay: number): boolean {
  if (!filter) return true;
  const block = Math.floor(localDay / BLOCK_DAYS);
  return ((allowedDays(filter, block) >>> (localDay - block * BLOCK_DAYS)) & 1) === 1;
}

/** The days of a block on which a window may start: bit 0 is the first. Found once for all windows of the same calendars. */
export function allowedDays(filter: DateFilter, block: number): number {
  const known = readyFilter(filter);
  return known.blocks.get(block) ?? readBlock(known, block);
}

function readBlock(filter: ReadyFilter, block: number): number {
  const firstDay = block * BLOCK_DAYS;
  let days = 0;
  for (let day = nearestIn(filter, firstDay, 'next'); day !== undefined && day < firstDay + BLOCK_DAYS; ) {
    days |= 1 << (day - firstDay);
    day = nearestIn(filter, day + 1, 'next');
  }
  if (filter.blocks.size >= MOST_BLOCKS_KEPT) filter.blocks.clear();
  filter.blocks.set(block, days);
  return days;
}

/** The nearest day that a filter allows: `day` itself, or after it, or before it; undefined if there is none. */
export function nearestAllowedDay(
  filter: DateFilter | undefined,
  day: number,
  direction: 'next' | 'prev',
): number | undefined {
  return filter ? nearestIn(readyFilter(filter), day, direction) : day;
}

function nearestIn({ allowed, excepted }: ReadyFilter, day: number, direction: 'next' | 'prev'): number | undefined {
  if (allowed) return allowed[direction === 'next' ? lowerBound(allowed, day) : lowerBound(allowed, day + 1) - 1];
  const { firstDays, lastDays } = excepted;
  const place = lowerBound(lastDays, day);
  const [firstDay = Number.POSITIVE_INFINITY, lastDay = day] = [firstDays[place], lastDays[place]];
  if (firstDay > day) return day;
  return direction === 'next' ? lastDay + 1 : firstDay - 1;
}

/** The most days that a search for an opening skips in a row: few, where excepted days stand alone. */
export function mostPassed(filter: DateFilter | undefined): number {
  return filter ? readyFilter(filter).mostPassed : 0;
}

/** Prepares the dates ahead of the first question: thousands of days take milliseconds. */
export function prepareDates(spec: TimeSpec): void {
  if ('dates' in spec && spec.dates) readyFilter(spec.dates);
}

/** The calendars of a time as a key that is the same for the same ones, and the number of their days together. */
export function calendarsOf(spec: TimeSpec): { key: string; days: number } {
  const { only, except = [] } = ('dates' in spec && spec.dates) || {};
  const days = [...(only ?? []), ...except].reduce((sum, calendar) => sum + calendar.days.length, 0);
  return { key: keyOf({ ...(only && { only }), except }), days };
}

function readyFilter(filter: DateFilter): ReadyFilter {
  const known = ready.get(filter);
  if (known) return known;
  const made = sharedFilter(filter);
  ready.set(filter, made);
  return made;
}

function sharedFilter(filter: DateFilter): ReadyFilter {
  const { only, except = [] } = filter;
  const first = only?.[0] ?? except[0];
  if (!first) return makeReady(filter);
  const shared = byCalendars.get(first) ?? new Map<string, ReadyFilter>();
  byCalendars.set(first, shared);
  const key = keyOf(filter);
  const made = shared.get(key) ?? makeReady(filter);
  shared.set(key, made);
  return made;
}

function keyOf({ only, except = [] }: DateFilter): string {
  return `${only?.map(numberOf).join()} ${except.map(numberOf).join()}`;
}

function numberOf(calendar: Calendar): number {
  const known = numbers.get(calendar);
  if (known !== undefined) return known;
  calendarsSeen += 1;
  numbers.set(calendar, calendarsSeen);
  return calendarsSeen;
}

function makeReady({ only, except = [] }: DateFilter): ReadyFilter {
  const days = daysOf(except);
  const excepted = stretchesOf(days);
  const leftOut = { allowed: undefined, excepted, mostPassed: longestRow(days), blocks: new Map<number, number>() };
  if (!only) return leftOut;
  const allowed = daysOf(only).filter((day) => nearestIn(leftOut, day, 'next') === day);
  return { ...leftOut, allowed, mostPassed: Math.min(allowed.length, MOST_SEARCHED) };
}

/** The most days of which each is at most a week after the one before it: windows recur each week. */
function longestRow(days: readonly number[]): number {
  let longest = 0;
  let row = 0;
  let before = Number.NEGATIVE_INFINITY;
  for (const day of days) {
    row = day - before > 7 ? 1 : row + 1;
    before = day;
    longest = Math.max(longest, row);
  }
  return Math.min(longest, MOST_SEARCHED);
}

/** Ascending, each once. */
function daysOf(calendars: readonly Calendar[]): number[] {
  const [only, ...others] = calendars.map(({ days }) => days);
  if (only && others.length === 0) return [...only];
  return [...new Set(calendars.flatMap(({ days }) => days))].sort((a, b) => a - b);
}

/** So that a long holiday is passed in one step, from wherever in it. */
function stretchesOf(days: readonly number[]): ReadyFilter['excepted'] {
  return {
    firstDays: days.filter((day, place) => days[place - 1] !== day - 1),
    lastDays: days.filter((day, place) => days[place + 1] !== day + 1),
  };
}
