import type { CronSwitch } from '../time-spec.ts';
import { type Firing, firingAfter, firingAtOrBefore } from './cron-firings.ts';
import type { WindowKind } from './opening.ts';

/** Ends that starts at the same time undo, in a row, before the window counts as one without an end. */
const MOST_TIES = 20_000;

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
    for (let ties = 0; start && ties < MOST_TIES; ties += 1) {
      if (isOpenAt(spec, start.ms)) return start.ms;
      start = firingAfter(startsOf(spec), start.ms);
    }
    return undefined;
  },

  latestEndUntil(spec, instantMs) {
    let start = firingAtOrBefore(startsOf(spec), instantMs);
    for (let ties = 0; start && ties < MOST_TIES; ties += 1) {
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

/** The first end after an instant that no start at the same time undoes. */
function nextEnd(spec: CronSwitch, instantMs: number): number {
  let end = firingAfter(endsOf(spec), instantMs);
  for (let ties = 0; end && ties < MOST_TIES; ties += 1) {
    if (!isOpenAt(spec, end.ms)) return end.ms;
    end = firingAfter(endsOf(spec), end.ms);
  }
  return Number.POSITIVE_INFINITY;
}

/** Since when the window, open at an instant, has been open. */
function lastStart(spec: CronSwitch, instantMs: number): number {
  let end = firingAtOrBefore(endsOf(spec), instantMs);
  for (let ties = 0; end && ties < MOST_TIES; ties += 1) {
    if (!isOpenAt(spec, end.ms)) return firingAfter(startsOf(spec), end.ms)?.ms ?? instantMs;
    end = firingAtOrBefore(endsOf(spec), end.ms - 1);
  }
  return Number.NEGATIVE_INFINITY;
}

function startsOf({ startCron, zone, dates }: CronSwitch) {
  return { cron: startCron, zone, ...(dates && { dates }) };
}

function endsOf({ endCron, zone }: CronSwitch) {
  return { cron: endCron, zone };
}
