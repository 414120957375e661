import type { Calendar, DateFilter } from '../time-spec.ts';
import { lowerBound } from './lower-bound.ts';

const knownSets = new WeakMap<Calendar, ReadonlySet<number>>();

/** True if a window may start on a local date, given as days since 1970-01-01. */
export function allowsDay(filter: DateFilter | undefined, localDay: number): boolean {
  if (!filter) return true;
  return (filter.only === undefined || isInAny(filter.only, localDay)) && !isInAny(filter.except, localDay);
}

/** The nearest day that a filter allows: `day` itself, or after it, or before it; undefined if there is none. */
export function nearestAllowedDay(
  filter: DateFilter | undefined,
  day: number,
  direction: 'next' | 'prev',
): number | undefined {
  const step = direction === 'next' ? 1 : -1;
  if (filter?.only === undefined) {
    let allowed = day;
    while (!allowsDay(filter, allowed)) allowed += step;
    return allowed;
  }
  let nearest: number | undefined;
  for (const { days } of filter.only) {
    let index = direction === 'next' ? lowerBound(days, day) : lowerBound(days, day + 1) - 1;
    while (index >= 0 && index < days.length && isInAny(filter.except, days[index] ?? 0)) index += step;
    const found = days[index];
    if (found !== undefined && (nearest === undefined || (found - nearest) * step < 0)) nearest = found;
  }
  return nearest;
}

function isInAny(calendars: readonly Calendar[] | undefined, localDay: number): boolean {
  if (calendars) for (const calendar of calendars) if (daysOf(calendar).has(localDay)) return true;
  return false;
}

function daysOf(calendar: Calendar): ReadonlySet<number> {
  const known = knownSets.get(calendar);
  if (known) return known;
  const days = new Set(calendar.days);
  knownSets.set(calendar, days);
  return days;
}
