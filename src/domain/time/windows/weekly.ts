import { sum } from '../../sum.ts';
import type { WeeklyWindow } from '../time-spec.ts';
import { DAY_MINUTES } from '../units.ts';
import { allowsDay, MAX_DAYS_SEARCHED, nearestAllowedDay } from './date-filter.ts';
import { instantOfMinute, localDayAt, weekdayOf } from './local-time.ts';
import type { Opening, WindowKind } from './opening.ts';

/** After this many matching days without an opening there is none: a clock change affects at most one day. */
const DAYS_TO_SEARCH = 5;
/** With `only`, allowed days may be on other weekdays for years. A calendar has at most this many days. */
const MAX_ALLOWED_DAYS = 20_000;

/**
 * The last opening that has started by an instant; openings start and end in order of their days. The search begins with tomorrow, which becomes
 * today again when clocks go back over midnight. Undefined if no opening that may touch the instant has started.
 */
function lastStartedOpening(spec: WeeklyWindow, instantMs: number): Opening | undefined {
  const today = localDayAt(spec.zone, instantMs);
  for (let day = today + 1; day >= today - spec.endDayOffset - 1; day -= 1) {
    const startMs = startOfDay(spec, day);
    const opening = startMs !== undefined && startMs <= instantMs ? openingFrom(spec, day, startMs) : undefined;
    if (opening) return opening;
  }
  return undefined;
}

/** The first opening that has not ended before an instant. */
function firstUnendedOpening(spec: WeeklyWindow, instantMs: number): Opening | undefined {
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
  /** The result if the search stops at this day without an opening. */
  reached(day: number): number;
}

function searchFrom(spec: WeeklyWindow, fromDay: number, direction: 'next' | 'prev', { answer, reached }: Search) {
  const step = direction === 'next' ? 1 : -1;
  const maxDays = maxDaysToSearch(spec);
  let day = fromDay;
  for (let searched = 0; searched < maxDays; searched += 1) {
    if (searched === MAX_DAYS_SEARCHED) return reached(day);
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
  isOpenAt: (spec, instantMs) => instantMs < (lastStartedOpening(spec, instantMs)?.endMs ?? instantMs),
  endTouching(spec, instantMs) {
    const endMs = lastStartedOpening(spec, instantMs)?.endMs;
    return endMs !== undefined && instantMs <= endMs ? endMs : undefined;
  },
  startTouching(spec, instantMs) {
    const startMs = firstUnendedOpening(spec, instantMs)?.startMs;
    return startMs !== undefined && startMs <= instantMs ? startMs : undefined;
  },
  nextStartAfter,
  latestEndUntil,
};

/** Wall-clock minutes from the start to the end; 0 for a window that is never open. */
export function lengthMinutes({ startMinute, endMinute, endDayOffset }: WeeklyWindow): number {
  return Math.max(0, endDayOffset * DAY_MINUTES + endMinute - startMinute);
}

/** The maximum number of days to examine; later days have no opening either. 0 if the window never opens. */
function maxDaysToSearch(spec: WeeklyWindow): number {
  const { days, endDayOffset, dates } = spec;
  if (lengthMinutes(spec) === 0) return 0;
  if (dates?.only) return MAX_ALLOWED_DAYS;
  const excepted = sum((dates?.except ?? []).map((calendar) => calendar.days.length));
  return days.length * (DAYS_TO_SEARCH + endDayOffset) + excepted;
}

/** The opening of a local day; undefined if there is none, or if a change of the clocks leaves nothing of it. */
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
