import { DateTime } from 'luxon';
import type { TimeSpec, WeeklyWindow } from '../../src/domain/time-spec.ts';

/**
 * The obvious implementation: walks minute by minute and asks luxon what the local clock shows. A boundary at a local
 * time happens at the first minute at which the clock shows that time or a later one. Slow and without arithmetic of zones.
 */
export interface SlowWindows {
  isOpenAt(specs: readonly TimeSpec[], instantMs: number): boolean;
}

export const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

/** What the local clock shows, as the milliseconds since the epoch that it would be in UTC. */
function shownAt(zone: string, instantMs: number): number {
  return instantMs + DateTime.fromMillis(instantMs, { zone }).offset * MINUTE_MS;
}

/** By one walk: the minutes of [fromMs, toMs) at which the local clock shows a later time than ever before. */
function walk(zone: string, fromMs: number, toMs: number): { shownMs: number; ms: number }[] {
  const firsts: { shownMs: number; ms: number }[] = [];
  let latestMs = Number.NEGATIVE_INFINITY;
  for (let ms = fromMs; ms < toMs; ms += MINUTE_MS) {
    const shownMs = shownAt(zone, ms);
    if (shownMs <= latestMs) continue;
    firsts.push({ shownMs, ms });
    latestMs = shownMs;
  }
  return firsts;
}

/** Openness of windows within [fromMs, toMs]. Spans last eight days at most: the walk starts and ends nine days further. */
export function slowWindows(zones: readonly string[], fromMs: number, toMs: number): SlowWindows {
  const startMs = fromMs - 9 * DAY_MS;
  const walks = new Map(zones.map((zone) => [zone, walk(zone, startMs, toMs + 9 * DAY_MS)]));
  const openings = new Map<WeeklyWindow, { startMs: number; endMs: number }[]>();

  function openingsOf(spec: WeeklyWindow) {
    const firstShowing = (time: DateTime) =>
      walks.get(spec.zone)?.find(({ shownMs }) => shownMs >= time.toMillis())?.ms ?? Number.POSITIVE_INFINITY;
    const found: { startMs: number; endMs: number }[] = [];
    let day = DateTime.fromMillis(startMs, { zone: 'utc' }).startOf('day').plus({ days: 1 });
    for (; day.toMillis() <= toMs + DAY_MS; day = day.plus({ days: 1 })) {
      if (!spec.days.some((weekday) => weekday === day.weekday)) continue;
      found.push({
        startMs: firstShowing(day.plus({ minutes: spec.startMinute })),
        endMs: firstShowing(day.plus({ days: spec.endDayOffset, minutes: spec.endMinute })),
      });
    }
    return found;
  }

  function isOpen(spec: TimeSpec, instantMs: number): boolean {
    if (spec.kind === 'always') return true;
    if (spec.kind === 'interval') return spec.startMs <= instantMs && instantMs < spec.endMs;
    const known = openings.get(spec) ?? openingsOf(spec);
    openings.set(spec, known);
    return known.some(({ startMs, endMs }) => startMs <= instantMs && instantMs < endMs);
  }

  return { isOpenAt: (specs, instantMs) => specs.some((spec) => isOpen(spec, instantMs)) };
}
