import type { TimeSpec } from '../time-spec.ts';
import { firingsOfDay, haveCommonFiring } from './cron-times.ts';
import { mostMeetings } from './stretch.ts';

const MINUTE_MS = 60_000;
/** Days of the dates of a window that are passed in the time of one step. */
const DAYS_OF_STEP = 50;

/**
 * At most so many steps a question about these windows takes: how often one of them is asked, where openings that touch each other
 * are followed. One step is one to two microseconds.
 */
export function stepsToFollow(specs: readonly TimeSpec[]): number {
  const touching = specs.reduce((sum, spec) => sum + mostTouching(spec, specs.length === 1), 0);
  const days = specs.reduce((sum, spec) => sum + daysOf(spec), 0);
  const meetings = Math.min(mostMeetings(specs.length), 3 + touching);
  return meetings * specs.length + days / DAYS_OF_STEP;
}

/** How many openings of a window may be followed one after the other, before one ends with nothing to go on. */
function mostTouching(spec: TimeSpec, isAlone: boolean): number {
  if (spec.kind === 'cron') {
    const { count, longestPauseMinutes, shortestPauseMinutes } = firingsOfDay(spec.cron);
    if (longestPauseMinutes * MINUTE_MS <= spec.forMs) return 1;
    return isAlone && shortestPauseMinutes * MINUTE_MS > spec.forMs ? 1 : count;
  }
  if (spec.kind === 'cron-switch') {
    return haveCommonFiring(spec.startCron, spec.endCron) ? Number.POSITIVE_INFINITY : 1;
  }
  return 1;
}

function daysOf(spec: TimeSpec): number {
  if (!('dates' in spec)) return 0;
  const { only = [], except = [] } = spec.dates ?? {};
  return [...only, ...except].reduce((sum, { days }) => sum + days.length, 0);
}
