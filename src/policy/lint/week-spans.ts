import { getOrAdd } from '../../domain/grouping.ts';
import type { CronWindow, TimeSpec, WeeklyWindow } from '../../domain/time/time-spec.ts';
import { DAY_MINUTES, DAY_MS, MINUTE_MS, WEEK_MS } from '../../domain/time/units.ts';
import { type MinuteSpan, weeklyMinutes, wrapToWeek } from '../../domain/time/windows/coverage.ts';
import { firingsOfDay, nearestLocalTime } from '../../domain/time/windows/cron-times.ts';
import { offsetMsAt } from '../../domain/time/windows/local-time.ts';
import type { Period } from './openings.ts';

const DAYS = [1, 2, 3, 4, 5, 6, 7] as const;
/** 1970-01-05, in days since 1970-01-01. */
const FIRST_MONDAY = 4;

/** Checks cheaply, without evaluating openings, that two lists of times are never open at the same instant. */
export interface WeekSpans {
  /**
   * True if no opening of `a` can overlap an opening of `b`. Weekly windows are compared within one week, with all offsets of
   * their zones in the period. False proves nothing.
   */
  areDisjoint(a: readonly TimeSpec[], b: readonly TimeSpec[]): boolean;
}

export function createWeekSpans(period: Period): WeekSpans {
  const zones = new Map<string, Offsets>();
  const local = new WeakMap<Repeating, MinuteSpan[]>();
  const utc = new WeakMap<Repeating, MinuteSpan[]>();
  const offsets = ({ zone }: Repeating) => getOrAdd(zones, zone, () => offsetsOf(zone, period));
  const inZone = (spec: Repeating) =>
    getOrAdd(local, spec, () => spansOf(spec, { least: 0, most: 0 }, offsets(spec).most - offsets(spec).least));
  const inUtc = (spec: Repeating) => getOrAdd(utc, spec, () => spansOf(spec, offsets(spec), 0));

  const isPairDisjoint = (a: TimeSpec, b: TimeSpec): boolean => {
    // An absolute interval takes precedence over a recurring time, so their overlap does not matter.
    if ((a.kind === 'interval') !== (b.kind === 'interval')) return true;
    if (a.kind === 'interval' && b.kind === 'interval') return a.endMs <= b.startMs || b.endMs <= a.startMs;
    if (!isRepeating(a) || !isRepeating(b)) return false;
    // In one zone, local times keep their order through clock changes.
    const spans = a.zone === b.zone ? inZone : inUtc;
    return !spansMeet(spans(a), spans(b));
  };
  return { areDisjoint: (a, b) => a.every((one) => b.every((other) => isPairDisjoint(one, other))) };
}

type Repeating = WeeklyWindow | CronWindow;

function isRepeating(spec: TimeSpec): spec is Repeating {
  return spec.kind === 'weekly' || spec.kind === 'cron';
}

/** The smallest and the largest number of minutes by which local time is ahead of UTC. */
interface Offsets {
  least: number;
  most: number;
}

/**
 * Spans that include the openings for all offsets. The length of a cron window is elapsed time, so by local time it may
 * end up to `lagMinutes` later.
 */
function spansOf(spec: Repeating, { least, most }: Offsets, lagMinutes: number): MinuteSpan[] {
  return openingsInWeek(spec, lagMinutes).flatMap(({ from, to }) => wrapToWeek({ from: from - most, to: to - least }));
}

function openingsInWeek(spec: Repeating, lagMinutes: number): MinuteSpan[] {
  if (spec.kind === 'weekly') return weeklyMinutes(spec);
  const { firstMinute, lastMinute } = firingsOfDay(spec.cron);
  return weekdaysOf(spec.cron).map((day) => {
    const midnight = (day - 1) * DAY_MINUTES;
    return { from: midnight + firstMinute, to: midnight + lastMinute + spec.forMs / MINUTE_MS + lagMinutes };
  });
}

/** The weekdays on which an expression may fire; all of them if it also names days of the month. */
function weekdaysOf(cron: string): readonly number[] {
  const [minute, hour, dayOfMonth, , dayOfWeek = '*'] = cron.split(' ');
  if (dayOfMonth !== '*' || /[L#?]/.test(dayOfWeek)) return DAYS;
  const weekly = `${minute} ${hour} * * ${dayOfWeek}`;
  return DAYS.filter((day) => {
    const midnightMs = (FIRST_MONDAY + day - 1) * DAY_MS;
    const firesMs = nearestLocalTime({ cron: weekly }, midnightMs, 'next');
    return firesMs !== undefined && firesMs < midnightMs + DAY_MS;
  });
}

function spansMeet(a: readonly MinuteSpan[], b: readonly MinuteSpan[]): boolean {
  return a.some((one) => b.some((other) => one.from < other.to && other.from < one.to));
}

/** Includes two weeks before and after the period, as an opening may have begun before it. */
function offsetsOf(zone: string, { nowMs, endMs }: Period): Offsets {
  let least = Number.POSITIVE_INFINITY;
  let most = Number.NEGATIVE_INFINITY;
  for (let atMs = nowMs - 2 * WEEK_MS; atMs <= endMs + 2 * WEEK_MS; atMs += WEEK_MS) {
    const minutes = offsetMsAt(zone, atMs) / MINUTE_MS;
    least = Math.min(least, minutes);
    most = Math.max(most, minutes);
  }
  return { least, most };
}
