import type { WeeklyWindow } from '../time-spec.ts';
import { allowsDay, MOST_SEARCHED, nearestAllowedDay } from './date-filter.ts';
import { instantOfMinute, localDayAt, weekdayOf } from './local-time.ts';
import type { Opening, WindowKind } from './opening.ts';

const DAY_MINUTES = 1440;
/** Days without an opening before there is none at all: a change of the clocks empties a window on one day at most. */
const DAYS_TO_SEARCH = 5;
/** With `only`, a day that is allowed may be another day of the week for years; a calendar has no more days than this. */
const MOST_ALLOWED_DAYS = 20_000;

/**
 * The opening that has begun by an instant and ends last: openings begin and end in the order of their days. Tomorrow's as well: when
 * the clocks go back over midnight, tomorrow has been, and today comes back. Undefined if none that may touch the instant has begun.
 */
function lastBegun(spec: WeeklyWindow, instantMs: number): Opening | undefined {
  const today = localDayAt(spec.zone, instantMs);
  for (let day = today + 1; day >= today - spec.endDayOffset - 1; day -= 1) {
    const startMs = startOfDay(spec, day);
    const opening = startMs !== undefined && startMs <= instantMs ? openingFrom(spec, day, startMs) : undefined;
    if (opening) return opening;
  }
  return undefined;
}

/** The opening that has not ended before an instant and begins first. */
function firstNotEnded(spec: WeeklyWindow, instantMs: number): Opening | undefined {
  const today = localDayAt(spec.zone, instantMs);
  for (let day = today - spec.endDayOffset - 1; day <= today + 1; day += 1) {
    const opening = openingOfDay(spec, day);
    if (opening && opening.endMs >= instantMs) return opening;
  }
  return undefined;
}

function nextStartAfter(spec: WeeklyWindow, instantMs: number): number | undefined {
  const { zone } = spec;
  return searchFrom(spec, localDayAt(zone, instantMs) - 1, 'next', {
    answer: (opening) => (opening.startMs > instantMs ? opening.startMs : undefined),
    reached: (day) => instantOfMinute(zone, day, 0),
  });
}

function latestEndUntil(spec: WeeklyWindow, instantMs: number): number | undefined {
  const { zone, endDayOffset } = spec;
  return searchFrom(spec, localDayAt(zone, instantMs) + 1, 'prev', {
    answer: (opening) => (opening.endMs <= instantMs ? opening.endMs : undefined),
    reached: (day) => instantOfMinute(zone, day + endDayOffset + 1, 0),
  });
}

interface Search {
  answer(opening: Opening): number | undefined;
  /** Days before this one, in the direction of the search, have no answer. */
  reached(day: number): number;
}

function searchFrom(spec: WeeklyWindow, fromDay: number, direction: 'next' | 'prev', { answer, reached }: Search) {
  const step = direction === 'next' ? 1 : -1;
  const most = mostDaysOf(spec);
  let day = fromDay;
  for (let searched = 0; searched < most; searched += 1) {
    if (searched === MOST_SEARCHED) return reached(day);
    while (!spec.days.includes(weekdayOf(day))) day += step;
    const allowed = nearestAllowedDay(spec.dates, day, direction);
    if (allowed === undefined) return undefined;
    const opening = allowed === day ? openingOfDay(spec, day) : undefined;
    const found = opening && answer(opening);
    if (found !== undefined) return found;
    day = allowed === day ? day + step : allowed;
  }
  return undefined;
}

export const weekly: WindowKind<WeeklyWindow> = {
  isOpenAt: (spec, instantMs) => instantMs < (lastBegun(spec, instantMs)?.endMs ?? instantMs),
  endTouching(spec, instantMs) {
    const endMs = lastBegun(spec, instantMs)?.endMs;
    return endMs !== undefined && instantMs <= endMs ? endMs : undefined;
  },
  startTouching(spec, instantMs) {
    const startMs = firstNotEnded(spec, instantMs)?.startMs;
    return startMs !== undefined && startMs <= instantMs ? startMs : undefined;
  },
  nextStartAfter,
  latestEndUntil,
};

/** Wall-clock minutes from the start to the end; 0 for a window that is never open. */
export function lengthMinutes({ startMinute, endMinute, endDayOffset }: WeeklyWindow): number {
  return Math.max(0, endDayOffset * DAY_MINUTES + endMinute - startMinute);
}

/**
 * After this many days there is no opening: days of the week, and the excepted ones among them. It ends after it starts, or is never open.
 */
function mostDaysOf(spec: WeeklyWindow): number {
  const { days, endDayOffset, dates } = spec;
  if (lengthMinutes(spec) === 0) return 0;
  if (dates?.only) return MOST_ALLOWED_DAYS;
  const excepted = (dates?.except ?? []).reduce((sum, calendar) => sum + calendar.days.length, 0);
  return days.length * (DAYS_TO_SEARCH + endDayOffset) + excepted;
}

/** The opening that belongs to a local day; undefined if there is none, or the change of the clocks leaves nothing of it. */
function openingOfDay(spec: WeeklyWindow, localDay: number): Opening | undefined {
  const startMs = startOfDay(spec, localDay);
  return startMs === undefined ? undefined : openingFrom(spec, localDay, startMs);
}

function startOfDay(spec: WeeklyWindow, localDay: number): number | undefined {
  if (!spec.days.includes(weekdayOf(localDay)) || !allowsDay(spec.dates, localDay)) return undefined;
  return instantOfMinute(spec.zone, localDay, spec.startMinute);
}

function openingFrom(spec: WeeklyWindow, localDay: number, startMs: number): Opening | undefined {
  const endMs = instantOfMinute(spec.zone, localDay + spec.endDayOffset, spec.endMinute);
  return startMs < endMs ? { startMs, endMs } : undefined;
}
