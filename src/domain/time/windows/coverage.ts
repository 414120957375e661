import type { TimeSpec, WeeklyWindow } from '../time-spec.ts';
import { lengthMinutes } from './weekly.ts';

const DAY_MINUTES = 1440;
const WEEK_MINUTES = 7 * DAY_MINUTES;

/** Windows that are open for so long that every minute has to be checked; cached for ever: windows don't change. */
const known = new WeakMap<readonly TimeSpec[], boolean>();

/**
 * True if windows of one and the same zone leave no minute of the local week uncovered: then they never close,
 * whatever the clocks do, since an end and the start that follows it are the same local time.
 */
export function coverWholeWeek(specs: readonly TimeSpec[]): boolean {
  if (!areOpenForWeek(specs)) return false;
  const before = known.get(specs);
  if (before !== undefined) return before;
  const answer = leaveNoMinute(specs);
  known.set(specs, answer);
  return answer;
}

/** Nearly all are not; asked at every instant, so it makes no lists. */
function areOpenForWeek(specs: readonly TimeSpec[]): boolean {
  let minutes = 0;
  for (const spec of specs) {
    const { kind } = spec;
    if (kind === 'always') return true;
    if (kind === 'weekly' && !spec.dates) minutes += spec.days.length * lengthMinutes(spec);
  }
  return minutes >= WEEK_MINUTES;
}

function leaveNoMinute(specs: readonly TimeSpec[]): boolean {
  if (specs.some((spec) => spec.kind === 'always')) return true;
  const weekly = specs.filter((spec): spec is WeeklyWindow => spec.kind === 'weekly' && !spec.dates);
  return [...new Set(weekly.map((spec) => spec.zone))].some((zone) =>
    coverWeekOfOneZone(weekly.filter((spec) => spec.zone === zone)),
  );
}

function coverWeekOfOneZone(specs: readonly WeeklyWindow[]): boolean {
  const spans = specs.flatMap(spansInWeek).sort((a, b) => a.from - b.from);
  let coveredTo = 0;
  for (const { from, to } of spans) {
    if (from > coveredTo) return false;
    coveredTo = Math.max(coveredTo, to);
  }
  return coveredTo >= WEEK_MINUTES;
}

/** Minutes of the local week that a window covers; a window beyond the end of Sunday goes on at the start of Monday. */
function spansInWeek(spec: WeeklyWindow): { from: number; to: number }[] {
  return spec.days.flatMap((day) => {
    const from = (day - 1) * DAY_MINUTES + spec.startMinute;
    const to = (day - 1 + spec.endDayOffset) * DAY_MINUTES + spec.endMinute;
    if (to <= WEEK_MINUTES) return [{ from, to }];
    return [
      { from, to: WEEK_MINUTES },
      { from: 0, to: to - WEEK_MINUTES },
    ];
  });
}
