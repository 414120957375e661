import type { CronSwitch } from '../time-spec.ts';
import { type Firing, firingAfter, firingAtOrBefore } from './cron-firings.ts';
import type { WindowKind } from './opening.ts';

/** Where clocks are set forward an end may undo a start at once; that happens once a year at most. */
const MOST_UNDONE = 16;

/** Ends that starts at the same time undo are ends all the same here: who follows openings goes on from there. */
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
    for (let undone = 0; start && undone < MOST_UNDONE; undone += 1) {
      if (isOpenAt(spec, start.ms)) return start.ms;
      start = firingAfter(startsOf(spec), start.ms);
    }
    return start?.ms;
  },

  latestEndUntil(spec, instantMs) {
    let start = firingAtOrBefore(startsOf(spec), instantMs);
    for (let undone = 0; start && undone < MOST_UNDONE; undone += 1) {
      if (isOpenAt(spec, start.ms)) return nextEnd(spec, start.ms);
      start = firingAtOrBefore(startsOf(spec), start.ms - 1);
    }
    return undefined;
  },
};

function isOpenAt(spec: CronSwitch, instantMs: number): boolean {
  const start = firingAtOrBefore(startsOf(spec), instantMs);
  const end = firingAtOrBefore(endsOf(spec), instantMs);
  return start !== undefined && (end === undefined || !isBefore(start, end));
}

/** Where a gap of the clocks brings both to the same instant, the local times that were meant decide. */
function isBefore(start: Firing, end: Firing): boolean {
  return start.ms < end.ms || (start.ms === end.ms && start.localMs < end.localMs);
}

function nextEnd(spec: CronSwitch, instantMs: number): number {
  return firingAfter(endsOf(spec), instantMs)?.ms ?? Number.POSITIVE_INFINITY;
}

/** Since when the window, open at an instant, has been open at least; an end that a start undoes counts as its start. */
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
