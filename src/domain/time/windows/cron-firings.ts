import type { DateFilter } from '../time-spec.ts';
import { HOUR_MS } from '../units.ts';
import { firingsOfDay, nearestLocalTime } from './cron-times.ts';
import { constantOffsetAround, instantOfLocal, offsetChangeAfter, offsetMsAt } from './local-time.ts';

/** More than the difference between any two UTC offsets, and than any offset itself. */
const NEAR_CHANGE_MS = 30 * HOUR_MS;

/** One firing of a cron expression. */
export interface Firing {
  ms: number;
  /** The intended local time, as if in UTC; if several coincide after a gap of the clocks, the latest. */
  localMs: number;
}

export interface Firings {
  cron: string;
  zone: string;
  dates?: DateFilter;
}

/** The latest firing at or before an instant; undefined if there is none. */
export function firingAtOrBefore(firings: Firings, instantMs: number): Firing | undefined {
  if (!hasFixedHour(firings.cron)) return nearestShownFiring(firings, instantMs, 'prev');
  const localMs = nearestLocalTime(firings, latestShownUntil(firings.zone, instantMs), 'prev');
  return localMs === undefined ? undefined : { ms: instantOfLocal(firings.zone, localMs), localMs };
}

/** The first firing strictly after an instant; undefined if there is none. */
export function firingAfter(firings: Firings, instantMs: number): Firing | undefined {
  const { cron, zone } = firings;
  if (!hasFixedHour(cron)) return nearestShownFiring(firings, instantMs + 1, 'next');
  const localMs = nearestLocalTime(firings, latestShownUntil(zone, instantMs) + 1, 'next');
  return localMs === undefined ? undefined : firingAtOrBefore(firings, instantOfLocal(zone, localMs));
}

/** The latest local time that the clock has shown up to an instant. Just after the clock was set back, that is later than the present local time. */
function latestShownUntil(zone: string, instantMs: number): number {
  const { fromMs, offsetMs } = constantOffsetAround(zone, instantMs);
  const nowMs = instantMs + offsetMs;
  if (instantMs - fromMs > NEAR_CHANGE_MS) return nowMs;
  const beforeMs = offsetMsAt(zone, instantMs - NEAR_CHANGE_MS);
  if (beforeMs <= offsetMs) return nowMs;
  return Math.max(nowMs, offsetChangeAfter(zone, instantMs - NEAR_CHANGE_MS) + beforeMs - 1);
}

/**
 * The nearest firing of an expression without a fixed hour: at or after an instant (`next`), or at or before it (`prev`). It fires whenever
 * the clock shows its local time: never in a gap, twice when clocks are set back. Goes from one clock change to the next, skipping those
 * far from the expression's local times.
 */
function nearestShownFiring(firings: Firings, instantMs: number, direction: 'next' | 'prev'): Firing | undefined {
  const isNext = direction === 'next';
  const never = isNext ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY;
  let fromMs = instantMs;
  while (fromMs !== never) {
    const around = constantOffsetAround(firings.zone, fromMs);
    const localMs = nearestLocalTime(firings, fromMs + around.offsetMs, direction) ?? never;
    const ms = localMs - around.offsetMs;
    if (around.fromMs <= ms && ms < around.toMs) return { ms, localMs };
    const changeMs = isNext ? around.toMs : around.fromMs - 1;
    // After a near clock change, local times may repeat, even if none is left before it.
    if (Math.abs(changeMs - fromMs) < NEAR_CHANGE_MS) fromMs = changeMs;
    else fromMs = isNext ? Math.max(changeMs, localMs - NEAR_CHANGE_MS) : Math.min(changeMs, localMs + NEAR_CHANGE_MS);
  }
  return undefined;
}

/** True if the hour is a number, a list or a range, without a wildcard or a step. */
export function hasFixedHour(cron: string): boolean {
  return firingsOfDay(cron).hasFixedHour;
}
