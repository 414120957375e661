import type { DateFilter } from '../time-spec.ts';
import { firingsOfDay, nearestLocalTime } from './cron-times.ts';
import { constantOffsetAround, instantOfLocal, offsetChangeAfter, offsetMsAt } from './local-time.ts';

/** More than any two offsets differ, and than any is ahead of or behind UTC. */
const NEAR_MS = 30 * 3_600_000;

/** One firing of a cron expression. */
export interface Firing {
  ms: number;
  /** The intended local time, as if in UTC: where several meet after a gap, the latest of them. */
  localMs: number;
}

export interface Firings {
  cron: string;
  zone: string;
  dates?: DateFilter;
}

/** The latest firing at or before an instant; undefined if there is none. */
export function firingAtOrBefore(firings: Firings, instantMs: number): Firing | undefined {
  if (!hasFixedHour(firings.cron)) return shownFiring(firings, instantMs, 'prev');
  const localMs = nearestLocalTime(firings, latestShownUntil(firings.zone, instantMs), 'prev');
  return localMs === undefined ? undefined : { ms: instantOfLocal(firings.zone, localMs), localMs };
}

/** The first firing strictly after an instant; undefined if there is none. */
export function firingAfter(firings: Firings, instantMs: number): Firing | undefined {
  const { cron, zone } = firings;
  if (!hasFixedHour(cron)) return shownFiring(firings, instantMs + 1, 'next');
  const localMs = nearestLocalTime(firings, latestShownUntil(zone, instantMs) + 1, 'next');
  return localMs === undefined ? undefined : firingAtOrBefore(firings, instantOfLocal(zone, localMs));
}

/** The latest local time that the clock has shown by an instant: more than it shows then, just after it was set back. */
function latestShownUntil(zone: string, instantMs: number): number {
  const { fromMs, offsetMs } = constantOffsetAround(zone, instantMs);
  const nowMs = instantMs + offsetMs;
  if (instantMs - fromMs > NEAR_MS) return nowMs;
  const beforeMs = offsetMsAt(zone, instantMs - NEAR_MS);
  if (beforeMs <= offsetMs) return nowMs;
  return Math.max(nowMs, offsetChangeAfter(zone, instantMs - NEAR_MS) + beforeMs - 1);
}

/**
 * The nearest firing, at an instant itself or before or after it, of an expression that fires as often as its local times are shown:
 * never in a gap, twice where clocks are set back. It goes from one change of the clocks to the next, and passes those far from
 * any local time at which the expression fires.
 */
function shownFiring(firings: Firings, instantMs: number, direction: 'next' | 'prev'): Firing | undefined {
  let fromMs = instantMs;
  for (;;) {
    const around = constantOffsetAround(firings.zone, fromMs);
    const localMs = nearestLocalTime(firings, fromMs + around.offsetMs, direction);
    if (localMs === undefined) return undefined;
    const ms = localMs - around.offsetMs;
    if (around.fromMs <= ms && ms < around.toMs) return { ms, localMs };
    if (direction === 'prev') fromMs = beyond(fromMs - around.fromMs, around.fromMs - 1, localMs + NEAR_MS, Math.min);
    else fromMs = beyond(around.toMs - fromMs, around.toMs, localMs - NEAR_MS, Math.max);
  }
}

/** Just beyond a change of the clocks that is near, since local times are shown again there; else also on to the next local time. */
function beyond(distanceMs: number, changeMs: number, localMs: number, further: typeof Math.min): number {
  return distanceMs < NEAR_MS ? changeMs : further(changeMs, localMs);
}

/** True if the hour is a number, a list or a range, without a wildcard or a step. */
export function hasFixedHour(cron: string): boolean {
  return firingsOfDay(cron).hasFixedHour;
}
