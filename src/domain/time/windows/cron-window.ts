import type { CronWindow } from '../time-spec.ts';
import { type Firing, firingAfter, firingAtOrBefore } from './cron-firings.ts';
import { firingsOfDay } from './cron-times.ts';
import { instantOfMinute } from './local-time.ts';
import { byOpenings, type Opening, type WindowKind } from './opening.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

/** The one that started earliest and the one that ends last, of those that may touch the instant. */
function openingsNear(spec: CronWindow, instantMs: number): Opening[] {
  const latest = firingAtOrBefore(spec, instantMs);
  const earliest = firingAfter(spec, instantMs - spec.forMs - 1);
  return [earliest, latest]
    .filter((firing) => firing !== undefined)
    .map((firing) => wholeDayOf(spec, firing) ?? { startMs: firing.ms, endMs: firing.ms + spec.forMs });
}

export const cronWindow: WindowKind<CronWindow> = byOpenings(openingsNear, {
  nextStartAfter: (spec, instantMs) => firingAfter(spec, instantMs)?.ms,
  latestEndUntil(spec, instantMs) {
    const firing = firingAtOrBefore(spec, instantMs - spec.forMs);
    return firing && firing.ms + spec.forMs;
  },
});

/**
 * All openings of a firing's day as one, where they touch each other and no clock changes on that day: an expression that
 * fires every minute is merged day by day.
 */
function wholeDayOf({ cron, forMs, zone }: CronWindow, { localMs }: Firing): Opening | undefined {
  const { firstMinute, lastMinute, longestPauseMinutes } = firingsOfDay(cron);
  if (longestPauseMinutes * MINUTE_MS > forMs) return undefined;
  const day = Math.floor(localMs / DAY_MS);
  const midnightMs = instantOfMinute(zone, day, 0);
  if (instantOfMinute(zone, day + 1, 0) - midnightMs !== DAY_MS) return undefined;
  return { startMs: midnightMs + firstMinute * MINUTE_MS, endMs: midnightMs + lastMinute * MINUTE_MS + forMs };
}
