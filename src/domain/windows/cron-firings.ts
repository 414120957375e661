import type { DateFilter } from '../time-spec.ts';
import { nearestLocalTime } from './cron-times.ts';
import { instantOfLocal } from './local-time.ts';
import { offsetMsAt } from './zone-offset.ts';

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
  const startMs = instantMs + offsets(firings.zone, instantMs).max;
  return search(firings, startMs, 'prev', {
    isCandidate: (ms) => ms <= instantMs,
    isBetter: (a, b) => a.ms > b.ms || (a.ms === b.ms && a.localMs > b.localMs),
    isSettled: (best, localMs) => localMs - offsets(firings.zone, best.ms).min < best.ms,
  });
}

/** The first firing strictly after an instant; undefined if there is none. */
export function firingAfter(firings: Firings, instantMs: number): Firing | undefined {
  const startMs = instantMs + offsets(firings.zone, instantMs).min;
  return search(firings, startMs, 'next', {
    isCandidate: (ms) => ms > instantMs,
    isBetter: (a, b) => a.ms < b.ms || (a.ms === b.ms && a.localMs > b.localMs),
    isSettled: (best, localMs) => localMs - offsets(firings.zone, best.ms).max > best.ms,
  });
}

interface Search {
  isCandidate(ms: number): boolean;
  isBetter(a: Firing, b: Firing): boolean;
  /** True if no local time from this one on can give a better firing than `best`. */
  isSettled(best: Firing, localMs: number): boolean;
}

/**
 * Walks over local times, away from where the answer can be at the nearest, until no further one can give a better answer.
 */
function search(firings: Firings, startMs: number, direction: Direction, { isCandidate, isBetter, isSettled }: Search) {
  let best: Firing | undefined;
  let localMs = nearestLocalTime(firings, startMs, direction);
  while (localMs !== undefined) {
    if (best && isSettled(best, localMs)) return best;
    for (const ms of instantsOf(firings, localMs)) {
      const firing = { ms, localMs };
      if (isCandidate(ms) && (!best || isBetter(firing, best))) best = firing;
    }
    localMs = nearestLocalTime(firings, localMs + (direction === 'next' ? MINUTE_MS : -MINUTE_MS), direction);
  }
  return best;
}

/** When the clock shows a local time: a fixed hour exactly once, whatever the clocks do; else as often as it is shown. */
function instantsOf({ cron, zone }: Firings, localMs: number): number[] {
  if (hasFixedHour(cron)) return [instantOfLocal(zone, localMs)];
  const both = [offsetMsAt(zone, localMs - NEAR_MS), offsetMsAt(zone, localMs + NEAR_MS)];
  return [...new Set(both)].map((offset) => localMs - offset).filter((ms) => ms + offsetMsAt(zone, ms) === localMs);
}

/** True if the hour is a number, a list or a range, without a wildcard or a step. */
export function hasFixedHour(cron: string): boolean {
  const hour = cron.split(' ')[1] ?? '*';
  return !/[*/]/.test(hour);
}

function offsets(zone: string, instantMs: number): { min: number; max: number } {
  const near = [instantMs - NEAR_MS, instantMs, instantMs + NEAR_MS].map((ms) => offsetMsAt(zone, ms));
  return { min: Math.min(...near), max: Math.max(...near) };
}
