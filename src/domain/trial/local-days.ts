/** Sums by local day, of hours or days that were measured. Days are counted from 1970-01-01. */
import { instantOfMinute, localDayAt } from '../time/windows/local-time.ts';
import type { UsageBucket } from '../usage/usage.ts';

const HOUR_SECONDS = 3600;

/** A unit's usage on a local day: CU-seconds, null where a part is unknown, and the number of unknown hours. */
export interface LocalDay {
  cuSeconds: number | null;
  unknownHours: number;
}

/**
 * The local days from `fromDay` up to, not including, `untilDay`; a day without any bucket is not in the result. An hour that a local
 * midnight divides is divided as well; a longer bucket that one divides says nothing about either day.
 */
export function localDays(
  buckets: readonly UsageBucket[],
  { zone, fromDay, untilDay }: { zone: string; fromDay: number; untilDay: number },
): Map<number, LocalDay> {
  const known = new Map<number, { cuSeconds: number; seconds: number }>();
  for (const { startMs, seconds, cuSeconds } of buckets) {
    const endMs = startMs + seconds * 1000;
    const [first, last] = [localDayAt(zone, startMs), localDayAt(zone, endMs - 1)];
    for (let day = Math.max(first, fromDay); day <= Math.min(last, untilDay - 1); day += 1) {
      const part = known.get(day) ?? { cuSeconds: 0, seconds: 0 };
      known.set(day, part);
      if (cuSeconds === null || (first !== last && seconds > HOUR_SECONDS)) continue;
      const inside =
        Math.min(endMs, instantOfMinute(zone, day + 1, 0)) - Math.max(startMs, instantOfMinute(zone, day, 0));
      part.cuSeconds += (cuSeconds * inside) / (seconds * 1000);
      part.seconds += inside / 1000;
    }
  }
  return new Map([...known].map(([day, part]) => [day, toLocalDay(zone, day, part)]));
}

/** Of two readings of the same days what is known better; where both are known, `later`. */
export function moreKnown(
  before: ReadonlyMap<number, LocalDay>,
  later: ReadonlyMap<number, LocalDay>,
): Map<number, LocalDay> {
  const days = new Map(before);
  for (const [day, one] of later) {
    if (one.unknownHours <= (days.get(day)?.unknownHours ?? Number.POSITIVE_INFINITY)) days.set(day, one);
  }
  return new Map([...days].sort(([a], [b]) => a - b));
}

function toLocalDay(
  zone: string,
  day: number,
  { cuSeconds, seconds }: { cuSeconds: number; seconds: number },
): LocalDay {
  const length = (instantOfMinute(zone, day + 1, 0) - instantOfMinute(zone, day, 0)) / 1000;
  const unknownHours = Math.round((length - seconds) / HOUR_SECONDS);
  const isKnown = length - seconds < 1;
  return { cuSeconds: isKnown ? cuSeconds : null, unknownHours: isKnown ? 0 : Math.max(1, unknownHours) };
}
