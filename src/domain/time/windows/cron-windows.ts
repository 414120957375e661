import type { CronSwitch, CronWindow } from '../time-spec.ts';
import { DAY_MS, MINUTE_MS } from '../units.ts';
import { type Firing, firingAfter, firingAtOrBefore } from './cron-firings.ts';
import { firingsOfDay } from './cron-times.ts';
import { instantOfMinute } from './local-time.ts';
import type { Opening, WindowKind } from './opening.ts';

/** The last opening that touches an instant; undefined if none does. A later firing never ends earlier. */
function latestOpening(spec: CronWindow, instantMs: number): Opening | undefined {
  const firing = firingAtOrBefore(spec, instantMs);
  const opening = firing && openingOf(spec, firing);
  return opening && instantMs <= opening.endMs ? opening : undefined;
}

export const cronWindow: WindowKind<CronWindow> = {
  isOpenAt: (spec, instantMs) => instantMs < (latestOpening(spec, instantMs)?.endMs ?? instantMs),
  endTouching: (spec, instantMs) => latestOpening(spec, instantMs)?.endMs,

  startTouching(spec, instantMs) {
    const earliest = firingAfter(spec, instantMs - spec.forMs - 1);
    return earliest && earliest.ms <= instantMs ? openingOf(spec, earliest).startMs : undefined;
  },

  nextStartAfter: (spec, instantMs) => firingAfter(spec, instantMs)?.ms,

  latestEndUntil(spec, instantMs) {
    const firing = firingAtOrBefore(spec, instantMs - spec.forMs);
    return firing && firing.ms + spec.forMs;
  },
};

function openingOf(spec: CronWindow, firing: Firing): Opening {
  return openingOfDay(spec, firing) ?? { startMs: firing.ms, endMs: firing.ms + spec.forMs };
}

/**
 * All openings of a firing's day as one opening, if they touch each other and no clock changes on that day. Expressions that fire every minute
 * are thus merged day by day. If clocks go back just after midnight, the last minutes of the day come again: their firings are not merged.
 */
function openingOfDay({ cron, forMs, zone }: CronWindow, { ms, localMs }: Firing): Opening | undefined {
  const { firstMinute, lastMinute, longestPauseMinutes } = firingsOfDay(cron);
  if (longestPauseMinutes * MINUTE_MS > forMs) return undefined;
  const day = Math.floor(localMs / DAY_MS);
  const midnightMs = instantOfMinute(zone, day, 0);
  if (instantOfMinute(zone, day + 1, 0) - midnightMs !== DAY_MS) return undefined;
  const lastMs = midnightMs + lastMinute * MINUTE_MS;
  return ms <= lastMs ? { startMs: midnightMs + firstMinute * MINUTE_MS, endMs: lastMs + forMs } : undefined;
}

/**
 * When clocks go forward, a start and an end may fall on the same instant; then the one with the later local time undoes the other. That happens
 * at most once a year, so a search skips at most this many undone starts.
 */
const MAX_UNDONE = 16;

/** An end that a start undoes still counts as an end here: the search for touching openings continues from it. */
export const cronSwitch: WindowKind<CronSwitch> = {
  isOpenAt,

  endTouching(spec, instantMs) {
    if (isOpenAt(spec, instantMs)) return nextEnd(spec, instantMs);
    return isOpenAt(spec, instantMs - 1) ? instantMs : undefined;
  },

  startTouching(spec, instantMs) {
    if (isOpenAt(spec, instantMs - 1)) return lastStart(spec, instantMs - 1);
    return isOpenAt(spec, instantMs) ? instantMs : undefined;
  },

  nextStartAfter(spec, instantMs) {
    let start = firingAfter(startsOf(spec), instantMs);
    for (let undone = 0; start && undone < MAX_UNDONE; undone += 1) {
      if (isOpenAt(spec, start.ms)) return start.ms;
      start = firingAfter(startsOf(spec), start.ms);
    }
    return start?.ms;
  },

  latestEndUntil(spec, instantMs) {
    let start = firingAtOrBefore(startsOf(spec), instantMs);
    for (let undone = 0; start && undone < MAX_UNDONE; undone += 1) {
      if (isOpenAt(spec, start.ms)) return nextEnd(spec, start.ms);
      start = firingAtOrBefore(startsOf(spec), start.ms - 1);
    }
    // Every later start is undone.
    return start && nextEnd(spec, start.ms);
  },
};

function isOpenAt(spec: CronSwitch, instantMs: number): boolean {
  const start = firingAtOrBefore(startsOf(spec), instantMs);
  const end = firingAtOrBefore(endsOf(spec), instantMs);
  return start !== undefined && (end === undefined || !isBefore(start, end));
}

/** Compares by instants; if a gap of the clocks makes them equal, by the intended local times. */
function isBefore(start: Firing, end: Firing): boolean {
  return start.ms < end.ms || (start.ms === end.ms && start.localMs < end.localMs);
}

function nextEnd(spec: CronSwitch, instantMs: number): number {
  return firingAfter(endsOf(spec), instantMs)?.ms ?? Number.POSITIVE_INFINITY;
}

/** The start of a window that is open at an instant. If a start undoes an end, that end counts as the start. */
function lastStart(spec: CronSwitch, instantMs: number): number {
  const end = firingAtOrBefore(endsOf(spec), instantMs);
  if (!end) return Number.NEGATIVE_INFINITY;
  return isOpenAt(spec, end.ms) ? end.ms : (firingAfter(startsOf(spec), end.ms)?.ms ?? instantMs);
}

function startsOf({ startCron, zone, dates }: CronSwitch) {
  return { cron: startCron, zone, ...(dates && { dates }) };
}

function endsOf({ endCron, zone }: CronSwitch) {
  return { cron: endCron, zone };
}
