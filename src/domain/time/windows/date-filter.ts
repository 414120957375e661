import { lowerBound } from '../../sorted.ts';
import type { Calendar, DateFilter } from '../time-spec.ts';

/** A filter made ready to be asked often: its calendars as one. */
interface ReadyFilter {
  /** The days that are left of `only`, ascending; undefined where all days are allowed but the excepted ones. */
  allowed: readonly number[] | undefined;
  excepted: ReadonlySet<number>;
  /** For the first day of each stretch of excepted days the last one, and the other way round. */
  otherEnd: ReadonlyMap<number, number>;
}

const ready = new WeakMap<DateFilter, ReadyFilter>();

/** True if a window may start on a local date, given as days since 1970-01-01. */
export function allowsDay(filter: DateFilter | undefined, localDay: number): boolean {
  if (!filter) return true;
  const { allowed, excepted } = readyFilter(filter);
  return allowed ? allowed[lowerBound(allowed, localDay)] === localDay : !excepted.has(localDay);
}

/** The nearest day that a filter allows: `day` itself, or after it, or before it; undefined if there is none. */
export function nearestAllowedDay(
  filter: DateFilter | undefined,
  day: number,
  direction: 'next' | 'prev',
): number | undefined {
  if (!filter) return day;
  const { allowed, excepted, otherEnd } = readyFilter(filter);
  if (allowed) return allowed[direction === 'next' ? lowerBound(allowed, day) : lowerBound(allowed, day + 1) - 1];
  const step = direction === 'next' ? 1 : -1;
  let found = day;
  while (excepted.has(found)) found = Math.max(found * step, (otherEnd.get(found) ?? found) * step) * step + step;
  return found;
}

function readyFilter(filter: DateFilter): ReadyFilter {
  const known = ready.get(filter);
  if (known) return known;
  const excepted = daysOf(filter.except ?? []);
  const allowed = filter.only && [...daysOf(filter.only)].filter((day) => !excepted.has(day)).sort((a, b) => a - b);
  const made = { allowed, excepted, otherEnd: stretchesOf(excepted) };
  ready.set(filter, made);
  return made;
}

function daysOf(calendars: readonly Calendar[]): Set<number> {
  const days = new Set<number>();
  for (const calendar of calendars) for (const day of calendar.days) days.add(day);
  return days;
}

/** So that a long holiday is passed in one step from either side. */
function stretchesOf(days: ReadonlySet<number>): Map<number, number> {
  const ends = new Map<number, number>();
  for (const day of days) {
    if (days.has(day - 1)) continue;
    let last = day;
    while (days.has(last + 1)) last += 1;
    ends.set(day, last);
    ends.set(last, day);
  }
  return ends;
}
