import { DateTime } from 'luxon';
import type { Calendar, CronSwitch, DateFilter, TimeSpec, WeeklyWindow } from '../../src/domain/time/time-spec.ts';

/**
 * The obvious implementation: walks minute by minute and asks luxon what the local clock shows. A boundary at a local
 * time happens at the first minute at which the clock shows that time or a later one. Slow and without arithmetic of zones.
 */
export interface SlowWindows {
  isOpenAt(specs: readonly TimeSpec[], instantMs: number): boolean;
}

export const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

/** What the local clock shows, as the milliseconds since the epoch that it would be in UTC. */
function shownAt(zone: string, instantMs: number): number {
  return instantMs + DateTime.fromMillis(instantMs, { zone }).offset * MINUTE_MS;
}

interface Shown {
  shownMs: number;
  ms: number;
}

/** What the local clock shows at every minute of [fromMs, toMs). */
function walk(zone: string, fromMs: number, toMs: number): Shown[] {
  return minutesOf(fromMs, toMs).map((ms) => ({ shownMs: shownAt(zone, ms), ms }));
}

/** The minutes at which the local clock shows a later time than ever before. */
function newTimesOnly(shown: readonly Shown[]): Shown[] {
  let latestMs = Number.NEGATIVE_INFINITY;
  return shown.filter(({ shownMs }) => {
    const isNew = shownMs > latestMs;
    latestMs = Math.max(latestMs, shownMs);
    return isNew;
  });
}

export function minutesOf(fromMs: number, toMs: number): number[] {
  return Array.from({ length: (toMs - fromMs) / MINUTE_MS }, (_, index) => fromMs + index * MINUTE_MS);
}

/** Fields of a cron expression as the tests write them: numbers, lists, ranges, steps and wildcards. */
function cronFields(cron: string): Set<number>[] {
  const bounds = [
    [0, 59],
    [0, 23],
    [1, 31],
    [1, 12],
    [0, 6],
  ] as const;
  return cron.split(' ').map((field, index) => {
    const [low, high] = bounds[index] ?? [0, 0];
    const values = field.split(',').flatMap((part) => {
      const [range = '', step = '1'] = part.split('/');
      const [from, to = from] = range === '*' ? [low, high] : range.split('-').map(Number);
      return Array.from({ length: high + 1 }, (_, value) => value).filter(
        (value) => value >= (from ?? low) && value <= (to ?? high) && (value - (from ?? low)) % Number(step) === 0,
      );
    });
    return new Set(values);
  });
}

function matches(fields: readonly Set<number>[], shownMs: number): boolean {
  const shown = new Date(shownMs);
  const day = [shown.getUTCDate(), shown.getUTCMonth() + 1, shown.getUTCDay()];
  return [shown.getUTCMinutes(), shown.getUTCHours(), ...day].every((part, index) => fields[index]?.has(part));
}

interface Firing {
  ms: number;
  localMs: number;
}

interface Stretch {
  startMs: number;
  endMs: number;
}

/** Openness of windows within [fromMs, toMs]. Spans last eight days at most: the walk starts and ends nine days further. */
export function slowWindows(zones: readonly string[], fromMs: number, toMs: number): SlowWindows {
  const startMs = fromMs - 9 * DAY_MS;
  const endMs = toMs + 9 * DAY_MS;
  const allShown = new Map(zones.map((zone) => [zone, walk(zone, startMs, endMs)]));
  const firstShown = new Map(zones.map((zone) => [zone, newTimesOnly(allShown.get(zone) ?? [])]));
  const openings = new Map<TimeSpec, Stretch[]>();

  const firstShowing = (zone: string, localMs: number) =>
    firstShown.get(zone)?.find(({ shownMs }) => shownMs >= localMs)?.ms ?? Number.POSITIVE_INFINITY;

  function isOn(dates: DateFilter | undefined, localMs: number): boolean {
    const day = Math.floor(localMs / DAY_MS);
    const isIn = (calendar: Calendar) => calendar.days.includes(day);
    return (dates?.only?.some(isIn) ?? true) && !dates?.except?.some(isIn);
  }

  function weeklyOpenings(spec: WeeklyWindow): Stretch[] {
    const found: Stretch[] = [];
    let day = DateTime.fromMillis(startMs, { zone: 'utc' }).startOf('day').plus({ days: 1 });
    for (; day.toMillis() <= toMs + DAY_MS; day = day.plus({ days: 1 })) {
      if (!spec.days.some((weekday) => weekday === day.weekday) || !isOn(spec.dates, day.toMillis())) continue;
      found.push({
        startMs: firstShowing(spec.zone, day.plus({ minutes: spec.startMinute }).toMillis()),
        endMs: firstShowing(spec.zone, day.plus({ days: spec.endDayOffset, minutes: spec.endMinute }).toMillis()),
      });
    }
    return found;
  }

  const knownFirings = new Map<string, Firing[]>();

  /** Firings in the order in which they count: by instant, and at one instant by the local time that was meant. */
  function firings(cron: string, zone: string, dates?: DateFilter): Firing[] {
    const known = knownFirings.get(`${cron} ${zone}`) ?? allFirings(cron, zone);
    knownFirings.set(`${cron} ${zone}`, known);
    return known.filter(({ localMs }) => isOn(dates, localMs));
  }

  function allFirings(cron: string, zone: string): Firing[] {
    const fields = cronFields(cron);
    const isElapsed = /[*/]/.test(cron.split(' ')[1] ?? '');
    const found = isElapsed
      ? (allShown.get(zone) ?? [])
          .filter(({ shownMs }) => matches(fields, shownMs))
          .map(({ shownMs, ms }) => ({ ms, localMs: shownMs }))
      : minutesOf(startMs + DAY_MS, endMs - DAY_MS)
          .filter((localMs) => matches(fields, localMs))
          .map((localMs) => ({ ms: firstShowing(zone, localMs), localMs }));
    return found.sort((x, y) => x.ms - y.ms || x.localMs - y.localMs);
  }

  function switchOpenings(spec: CronSwitch): Stretch[] {
    const starts = firings(spec.startCron, spec.zone, spec.dates).map((firing) => ({ ...firing, rank: 1 }));
    const ends = firings(spec.endCron, spec.zone).map((firing) => ({ ...firing, rank: 0 }));
    const all = [...starts, ...ends].sort((a, b) => a.ms - b.ms || a.localMs - b.localMs || a.rank - b.rank);
    return all.flatMap(({ ms, rank }, index) =>
      rank === 1 ? [{ startMs: ms, endMs: all[index + 1]?.ms ?? Number.POSITIVE_INFINITY }] : [],
    );
  }

  function openingsOf(spec: TimeSpec): Stretch[] {
    if (spec.kind === 'always') return [{ startMs: 0, endMs: Number.POSITIVE_INFINITY }];
    if (spec.kind === 'interval') return [spec];
    if (spec.kind === 'weekly') return weeklyOpenings(spec);
    if (spec.kind === 'cron-switch') return switchOpenings(spec);
    return firings(spec.cron, spec.zone, spec.dates).map(({ ms }) => ({ startMs: ms, endMs: ms + spec.forMs }));
  }

  function isOpen(spec: TimeSpec, instantMs: number): boolean {
    const known = openings.get(spec) ?? openingsOf(spec);
    openings.set(spec, known);
    return known.some((opening) => opening.startMs <= instantMs && instantMs < opening.endMs);
  }

  return { isOpenAt: (specs, instantMs) => specs.some((spec) => isOpen(spec, instantMs)) };
}
