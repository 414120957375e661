import { getOrAdd } from '../../grouping.ts';
import type { TimeSpec, WeeklyWindow } from '../time-spec.ts';
import { DAY_MINUTES } from '../units.ts';
import { lengthMinutes } from './weekly.ts';

const WEEK_MINUTES = 7 * DAY_MINUTES;

/** Cached results for windows whose minutes had to be checked. Windows don't change. */
const coverageCache = new WeakMap<readonly TimeSpec[], boolean>();

/**
 * True if windows of one zone cover every minute of the local week. They then never close, even when clocks change, since each end is the
 * same local time as the next start.
 */
export function coverWholeWeek(specs: readonly TimeSpec[]): boolean {
  if (!mayCoverWeek(specs)) return false;
  return getOrAdd(coverageCache, specs, () => coverEveryMinute(specs));
}

/** A quick check of the total duration, which excludes nearly all windows. It runs for every instant, so it allocates nothing. */
function mayCoverWeek(specs: readonly TimeSpec[]): boolean {
  let minutes = 0;
  for (const spec of specs) {
    const { kind } = spec;
    if (kind === 'always') return true;
    if (kind === 'weekly' && !spec.dates) minutes += spec.days.length * lengthMinutes(spec);
  }
  return minutes >= WEEK_MINUTES;
}

function coverEveryMinute(specs: readonly TimeSpec[]): boolean {
  if (specs.some((spec) => spec.kind === 'always')) return true;
  const weekly = specs.filter((spec): spec is WeeklyWindow => spec.kind === 'weekly' && !spec.dates);
  return [...new Set(weekly.map((spec) => spec.zone))].some((zone) =>
    coverWeekOfOneZone(weekly.filter((spec) => spec.zone === zone)),
  );
}

function coverWeekOfOneZone(specs: readonly WeeklyWindow[]): boolean {
  const spans = specs
    .flatMap(weeklyMinutes)
    .flatMap(wrapToWeek)
    .sort((a, b) => a.from - b.from);
  let coveredTo = 0;
  for (const { from, to } of spans) {
    if (from > coveredTo) return false;
    coveredTo = Math.max(coveredTo, to);
  }
  return coveredTo >= WEEK_MINUTES;
}

/** Minutes of a week, [from, to). */
export interface MinuteSpan {
  from: number;
  to: number;
}

/** The minutes of the local week in which a window is open on each of its days; after the end of Sunday they exceed the week. */
export function weeklyMinutes(spec: WeeklyWindow): MinuteSpan[] {
  return spec.days.map((day) => {
    const midnight = (day - 1) * DAY_MINUTES;
    return { from: midnight + spec.startMinute, to: midnight + spec.endDayOffset * DAY_MINUTES + spec.endMinute };
  });
}

/** Maps a span into one week: minutes beyond one end of the week continue at the other. */
export function wrapToWeek({ from, to }: MinuteSpan): MinuteSpan[] {
  if (to - from >= WEEK_MINUTES) return [{ from: 0, to: WEEK_MINUTES }];
  const start = ((from % WEEK_MINUTES) + WEEK_MINUTES) % WEEK_MINUTES;
  const end = start + (to - from);
  if (end <= WEEK_MINUTES) return [{ from: start, to: end }];
  return [
    { from: start, to: WEEK_MINUTES },
    { from: 0, to: end - WEEK_MINUTES },
  ];
}
