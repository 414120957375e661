import type { DateFilter } from '../time-spec.ts';
import { firingsOfDay, nearestLocalTime } from './cron-times.ts';
import { instantOfLocal, LOOK_EVERY_MS, offsetChangeBetween, offsetMsAt } from './local-time.ts';

const MINUTE_MS = 60_000;
/** Around an instant, every offset that the zone has near it. */
const NEAR_MS = 30 * 3_600_000;

/** One firing of a cron expression. */
export interface Firing {
  ms: number;
  /** The local time that was meant, as it would be in UTC: where several meet after a gap, the latest of them. */
  localMs: number;
}

export interface Firings {
  cron: string;
  zone: string;
  dates?: DateFilter;
}

type Direction = 'next' | 'prev';

/** The latest firing at or before an instant; undefined if there is none. */
export function firingAtOrBefore(firings: Firings, instantMs: number): Firing | undefined {
  return search(firings, latestShownUntil(firings.zone, instantMs), 'prev', {
    isCandidate: (ms) => ms <= instantMs,
    isBetter: (a, b) => a.ms > b.ms || (a.ms === b.ms && a.localMs > b.localMs),
    isSurelyBest: (ms) => hasOneOffset(firings.zone, ms, instantMs),
    isSettled: (best, localMs) => localMs - offsets(firings.zone, best.ms).min < best.ms,
  });
}

/** The first firing strictly after an instant; undefined if there is none. */
export function firingAfter(firings: Firings, instantMs: number): Firing | undefined {
  return search(firings, earliestShownAfter(firings.zone, instantMs), 'next', {
    isCandidate: (ms) => ms > instantMs,
    isBetter: (a, b) => a.ms < b.ms || (a.ms === b.ms && a.localMs > b.localMs),
    isSurelyBest: (ms) => hasOneOffset(firings.zone, instantMs, ms),
    isSettled: (best, localMs) => localMs - offsets(firings.zone, best.ms).max > best.ms,
  });
}

/** The latest local time that the clock has shown by an instant: more than it shows then, just after it was set back. */
function latestShownUntil(zone: string, instantMs: number): number {
  const nowMs = instantMs + offsetMsAt(zone, instantMs);
  const beforeMs = offsetMsAt(zone, instantMs - NEAR_MS);
  if (beforeMs <= offsetMsAt(zone, instantMs)) return nowMs;
  return Math.max(nowMs, offsetChangeBetween(zone, instantMs - NEAR_MS, instantMs) + beforeMs);
}

/** The earliest local time that the clock shows after an instant: less than it shows then, just before it is set back. */
function earliestShownAfter(zone: string, instantMs: number): number {
  const nowMs = instantMs + offsetMsAt(zone, instantMs);
  const afterMs = offsetMsAt(zone, instantMs + NEAR_MS);
  if (afterMs >= offsetMsAt(zone, instantMs)) return nowMs;
  return Math.min(nowMs, offsetChangeBetween(zone, instantMs, instantMs + NEAR_MS) + afterMs);
}

/** True if no clock is changed from one instant to a later one, seen from their offsets alone. */
function hasOneOffset(zone: string, fromMs: number, toMs: number): boolean {
  return toMs - fromMs < LOOK_EVERY_MS && offsetMsAt(zone, fromMs) === offsetMsAt(zone, toMs);
}

interface Search {
  isCandidate(ms: number): boolean;
  isBetter(a: Firing, b: Firing): boolean;
  /** True if the first candidate is the best: where no clock is changed, local times are in the order of their instants. */
  isSurelyBest(ms: number): boolean;
  /** True if no local time from this one on can give a better firing than `best`. */
  isSettled(best: Firing, localMs: number): boolean;
}

/**
 * Walks over local times, away from where the answer can be at the nearest, until no further one can give a better answer.
 */
function search(firings: Firings, startMs: number, direction: Direction, by: Search): Firing | undefined {
  let best: Firing | undefined;
  let localMs = nearestLocalTime(firings, startMs, direction);
  while (localMs !== undefined && !(best && by.isSettled(best, localMs))) {
    best = bestOf(best, firings, localMs, by);
    if (best && by.isSurelyBest(best.ms)) return best;
    localMs = nearestLocalTime(firings, localMs + (direction === 'next' ? MINUTE_MS : -MINUTE_MS), direction);
  }
  return best;
}

function bestOf(known: Firing | undefined, firings: Firings, localMs: number, { isCandidate, isBetter }: Search) {
  let best = known;
  for (const ms of instantsOf(firings, localMs)) {
    const firing = { ms, localMs };
    if (isCandidate(ms) && (!best || isBetter(firing, best))) best = firing;
  }
  return best;
}

/** When the clock shows a local time: a fixed hour exactly once, whatever the clocks do; else as often as it is shown. */
function instantsOf({ cron, zone }: Firings, localMs: number): number[] {
  if (hasFixedHour(cron)) return [instantOfLocal(zone, localMs)];
  const oneMs = localMs - offsetMsAt(zone, localMs - NEAR_MS);
  const otherMs = localMs - offsetMsAt(zone, localMs + NEAR_MS);
  if (oneMs === otherMs) return [oneMs];
  return [oneMs, otherMs].filter((ms) => ms + offsetMsAt(zone, ms) === localMs);
}

/** True if the hour is a number, a list or a range, without a wildcard or a step. */
export function hasFixedHour(cron: string): boolean {
  return firingsOfDay(cron).hasFixedHour;
}

function offsets(zone: string, instantMs: number): { min: number; max: number } {
  const near = [instantMs - NEAR_MS, instantMs, instantMs + NEAR_MS].map((ms) => offsetMsAt(zone, ms));
  return { min: Math.min(...near), max: Math.max(...near) };
}
