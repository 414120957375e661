import type { WeeklyWindow } from '../time-spec.ts';
import { allowsDay, nearestAllowedDay } from './date-filter.ts';
import { instantOfMinute, localDayAt, weekdayOf } from './local-time.ts';
import { byOpenings, type Opening, type WindowKind } from './opening.ts';

/** Allowed days without an opening before there is none at all: a change of the clocks empties a window on one day at most. */
const DAYS_TO_LOOK = 7 * 5;
/** With `only`, a day that is allowed may be another day of the week for years; a calendar has no more days than this. */
const MOST_ALLOWED_DAYS = 20_000;

function openingsNear(spec: WeeklyWindow, instantMs: number): Opening[] {
  const today = localDayAt(spec.zone, instantMs);
  const openings: Opening[] = [];
  // Tomorrow as well: when the clocks go back over midnight, tomorrow has been, and today comes back.
  for (let day = today - spec.endDayOffset - 1; day <= today + 1; day += 1) {
    const opening = openingOfDay(spec, day);
    if (opening) openings.push(opening);
  }
  return openings;
}

function nextStartAfter(spec: WeeklyWindow, instantMs: number): number | undefined {
  const most = spec.dates?.only ? MOST_ALLOWED_DAYS : DAYS_TO_LOOK + exceptedDays(spec);
  let day = nearestAllowedDay(spec.dates, localDayAt(spec.zone, instantMs) - 1, 'next');
  for (let looked = 0; day !== undefined && looked < most; looked += 1) {
    const opening = openingOfDay(spec, day);
    if (opening && opening.startMs > instantMs) return opening.startMs;
    day = nearestAllowedDay(spec.dates, day + 1, 'next');
  }
  return undefined;
}

function latestEndUntil(spec: WeeklyWindow, instantMs: number): number | undefined {
  const most = spec.dates?.only ? MOST_ALLOWED_DAYS : DAYS_TO_LOOK + exceptedDays(spec);
  let day = nearestAllowedDay(spec.dates, localDayAt(spec.zone, instantMs) + 1, 'prev');
  for (let looked = 0; day !== undefined && looked < most; looked += 1) {
    const opening = openingOfDay(spec, day);
    if (opening && opening.endMs <= instantMs) return opening.endMs;
    day = nearestAllowedDay(spec.dates, day - 1, 'prev');
  }
  return undefined;
}

export const weekly: WindowKind<WeeklyWindow> = byOpenings(openingsNear, { nextStartAfter, latestEndUntil });

/** Allowed days may be few among excepted ones of the same day of the week. */
function exceptedDays(spec: WeeklyWindow): number {
  return 7 * (spec.dates?.except ?? []).reduce((sum, { days }) => sum + days.length, 0);
}

/** The opening that belongs to a local day; undefined if there is none, or the change of the clocks leaves nothing of it. */
function openingOfDay(spec: WeeklyWindow, localDay: number): Opening | undefined {
  if (!spec.days.includes(weekdayOf(localDay)) || !allowsDay(spec.dates, localDay)) return undefined;
  const startMs = instantOfMinute(spec.zone, localDay, spec.startMinute);
  const endMs = instantOfMinute(spec.zone, localDay + spec.endDayOffset, spec.endMinute);
  return startMs < endMs ? { startMs, endMs } : undefined;
}
