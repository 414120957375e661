import { DateTime } from 'luxon';
import { getOrAdd } from '../../domain/grouping.ts';
import type { TimeSpec, WeeklyWindow } from '../../domain/time/time-spec.ts';
import { DAY_MS, MINUTE_MS, WEEK_MS } from '../../domain/time/units.ts';
import { hasFixedHour } from '../../domain/time/windows/cron-firings.ts';
import { nearestLocalTime } from '../../domain/time/windows/cron-times.ts';
import { allowsDay } from '../../domain/time/windows/date-filter.ts';
import { instantOfMinute, offsetChangeAfter, offsetMsAt, weekdayOf } from '../../domain/time/windows/local-time.ts';
import { readInterval } from '../time-text.ts';
import type { Period } from './openings.ts';
import { type LintRule, type PlacedTime, type Remark, timesOf } from './rule.ts';

/** A local time that the clocks skip on a day on which the window opens or closes. */
export const skippedLocalTime: LintRule = function* (context) {
  const byZone = new Map<string, readonly Gap[]>();
  const gapsIn = (zone: string) => getOrAdd(byZone, zone, () => gapsOf(zone, context));
  for (const policy of context.policies) {
    for (const time of timesOf(policy, context)) {
      const message =
        time.spec.kind === 'interval' ? skippedInInterval(time, gapsIn) : skippedInRecurring(time.spec, gapsIn);
      if (message !== undefined) yield { code: 'skipped-local-time', policy, at: time.at, message } satisfies Remark;
    }
  }
};

type GapsIn = (zone: string) => readonly Gap[];

function skippedInRecurring(spec: Exclude<TimeSpec, { kind: 'interval' }>, gapsIn: GapsIn): string | undefined {
  if (spec.kind === 'always') return undefined;
  for (const gap of gapsIn(spec.zone)) {
    const localMs = skippedBy(gap, spec);
    if (localMs === undefined) continue;
    const isEmpty = spec.kind === 'weekly' && isEmptied(spec, Math.floor(localMs / DAY_MS));
    return describe(localMs, gap, spec.zone, isEmpty);
  }
  return undefined;
}

/** The domain only has the instants of an interval, so its local times are read from the text. */
function skippedInInterval({ written, text }: PlacedTime, gapsIn: GapsIn): string | undefined {
  const interval = typeof text === 'string' ? readInterval(text.trim(), []) : undefined;
  if (!interval?.areLocal) return undefined;
  const zone = interval.zone ?? String(written?.valueAt(['timezone']) ?? 'UTC');
  for (const gap of gapsIn(zone)) {
    const localMs = [interval.startMs, interval.endMs].find((ms) => isIn(gap, ms));
    if (localMs !== undefined) return describe(localMs, gap, zone, false);
  }
  return undefined;
}

/** The first local time of a window that falls into a gap. */
function skippedBy(gap: Gap, spec: Exclude<TimeSpec, { kind: 'interval' | 'always' }>): number | undefined {
  if (spec.kind === 'weekly') return boundariesAround(gap, spec).find((localMs) => isIn(gap, localMs));
  const crons = spec.kind === 'cron' ? [spec.cron] : [spec.startCron, spec.endCron];
  for (const cron of crons.filter(hasFixedHour)) {
    const dates = cron === crons[0] ? spec.dates : undefined;
    const localMs = nearestLocalTime({ cron, ...(dates && { dates }) }, gap.fromLocalMs + MINUTE_MS, 'next');
    if (localMs !== undefined && isIn(gap, localMs)) return localMs;
  }
  return undefined;
}

/** The starts and ends of a weekly window on the days of a gap. */
function boundariesAround(gap: Gap, spec: WeeklyWindow): number[] {
  const days = [Math.floor(gap.fromLocalMs / DAY_MS), Math.floor(gap.toLocalMs / DAY_MS)];
  return days.flatMap((day) => [
    ...(opensOn(spec, day) ? [day * DAY_MS + spec.startMinute * MINUTE_MS] : []),
    ...(opensOn(spec, day - spec.endDayOffset) ? [day * DAY_MS + spec.endMinute * MINUTE_MS] : []),
  ]);
}

function opensOn({ days, dates }: WeeklyWindow, localDay: number): boolean {
  return days.includes(weekdayOf(localDay)) && allowsDay(dates, localDay);
}

/** True if the window opens on a local day, but the gap leaves nothing of it. */
function isEmptied(spec: WeeklyWindow, localDay: number): boolean {
  if (!opensOn(spec, localDay)) return false;
  const startMs = instantOfMinute(spec.zone, localDay, spec.startMinute);
  return startMs >= instantOfMinute(spec.zone, localDay + spec.endDayOffset, spec.endMinute);
}

function isIn({ fromLocalMs, toLocalMs }: Gap, localMs: number): boolean {
  return localMs > fromLocalMs && localMs < toLocalMs;
}

function describe(localMs: number, gap: Gap, zone: string, isEmpty: boolean): string {
  const date = DateTime.fromMillis(localMs, { zone: 'utc' }).toISODate();
  const from = clock(gap.fromLocalMs);
  const to = clock(gap.toLocalMs);
  const missing = `${clock(localMs)} does not exist on ${date} in ${zone}, where clocks go from ${from} to ${to}`;
  if (isEmpty) return `${missing}: nothing is left of the window, which does not open that day`;
  return `${missing}: it means ${to} that day`;
}

function clock(localMs: number): string {
  return DateTime.fromMillis(localMs, { zone: 'utc' }).toFormat('HH:mm');
}

/** Local times that a zone skips, strictly between both ends; local times are milliseconds as if they were UTC. */
interface Gap {
  fromLocalMs: number;
  toLocalMs: number;
}

/** The gaps of a zone in a period, in ascending order. */
function gapsOf(zone: string, { nowMs, endMs }: Period): Gap[] {
  const gaps: Gap[] = [];
  for (let atMs = nowMs; atMs < endMs; atMs += WEEK_MS) {
    const untilMs = Math.min(atMs + WEEK_MS, endMs);
    const before = offsetMsAt(zone, atMs);
    const after = offsetMsAt(zone, untilMs);
    if (after <= before) continue;
    const changeMs = offsetChangeAfter(zone, atMs);
    gaps.push({ fromLocalMs: changeMs + before, toLocalMs: changeMs + after });
  }
  return gaps;
}
