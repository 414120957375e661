import type { TimeSpec, WeeklyWindow } from '../time-spec.ts';
import { instantOfMinute, localDayAt, weekdayOf } from './local-time.ts';

/** One opening of one window, [startMs, endMs). Infinite where it has no start or end. */
export interface Opening {
  startMs: number;
  endMs: number;
}

const FOREVER: Opening = { startMs: Number.NEGATIVE_INFINITY, endMs: Number.POSITIVE_INFINITY };

/** A window is empty on at most one day of a change of the clocks; after so many weeks without an opening it has none. */
const WEEKS_TO_LOOK = 5;

/**
 * The openings of one window that `instantMs` touches (start ≤ instant ≤ end, so also one that just ends), in no order.
 */
export function openingsTouching(spec: TimeSpec, instantMs: number): Opening[] {
  if (spec.kind === 'always') return [FOREVER];
  if (spec.kind === 'interval') return [spec].filter((opening) => touches(opening, instantMs));
  const today = localDayAt(spec.zone, instantMs);
  const openings: Opening[] = [];
  // Tomorrow as well: when the clocks go back over midnight, tomorrow has been, and today comes back.
  for (let day = today - spec.endDayOffset - 1; day <= today + 1; day += 1) {
    const opening = openingOfDay(spec, day);
    if (opening && touches(opening, instantMs)) openings.push(opening);
  }
  return openings;
}

/** The first start of an opening strictly after an instant; undefined if the window never opens again. */
export function nextStartAfter(spec: TimeSpec, instantMs: number): number | undefined {
  if (spec.kind === 'always') return undefined;
  if (spec.kind === 'interval') {
    return spec.startMs > instantMs && spec.startMs < spec.endMs ? spec.startMs : undefined;
  }
  const today = localDayAt(spec.zone, instantMs);
  for (let day = today - 1; day <= today + 7 * WEEKS_TO_LOOK; day += 1) {
    const opening = openingOfDay(spec, day);
    if (opening && opening.startMs > instantMs) return opening.startMs;
  }
  return undefined;
}

/** The opening that belongs to a local day; undefined if there is none, or the change of the clocks leaves nothing of it. */
function openingOfDay(spec: WeeklyWindow, localDay: number): Opening | undefined {
  if (!spec.days.includes(weekdayOf(localDay))) return undefined;
  const startMs = instantOfMinute(spec.zone, localDay, spec.startMinute);
  const endMs = instantOfMinute(spec.zone, localDay + spec.endDayOffset, spec.endMinute);
  return startMs < endMs ? { startMs, endMs } : undefined;
}

function touches(opening: Opening, instantMs: number): boolean {
  return opening.startMs <= instantMs && instantMs <= opening.endMs && opening.startMs < opening.endMs;
}
