import { DateTime, IANAZone } from 'luxon';
import { ruleOf } from '../../domain/policy/kinds/kinds.ts';
import type { PolicySet } from '../../domain/policy/policy.ts';
import { overlaps, type Span } from '../../domain/time/span.ts';
import type { TimeSpec } from '../../domain/time/time-spec.ts';
import { UserError } from '../fail.ts';

/** `Mon 2 Mar 2026, 00:00 to Mon 9 Mar 2026, 00:00 (Europe/Berlin)`. */
export function formatSpan({ fromMs, toMs }: Span, zone: string): string {
  return `${formatInstant(fromMs, zone)} to ${formatInstant(toMs, zone)} (${zone})`;
}

/** `Mon 2 Mar 2026, 08:00`: local time of the zone. */
export function formatInstant(ms: number, zone: string): string {
  return inZone(ms, zone).toFormat('ccc d LLL yyyy, HH:mm');
}

const INSTANT = /\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g;

/** Replaces each UTC instant in the text (`2026-03-02T07:00:00Z`) by local time of the zone. */
export function localInstants(text: string, zone: string): string {
  return text.replaceAll(INSTANT, (iso) => formatInstant(Date.parse(iso), zone));
}

/** `Mon 2 Mar`. */
export function formatDay(ms: number, zone: string): string {
  return inZone(ms, zone).toFormat('ccc d LLL');
}

/** `08:00`, with seconds where there are any. */
export function formatTime(ms: number, zone: string): string {
  const time = inZone(ms, zone);
  return time.toFormat(time.second === 0 ? 'HH:mm' : 'HH:mm:ss');
}

function inZone(ms: number, zone: string): DateTime {
  return DateTime.fromMillis(ms, { zone, locale: 'en' });
}

/**
 * The zone of shown days and hours: `--zone`, otherwise the zone of the first window that has one, otherwise UTC. If the owner is a team with
 * policies, only windows of its policies count, then those of policies without a team.
 */
export function displayZone({ zone, owner }: { zone?: string; owner?: string }, sets: readonly PolicySet[]): string {
  if (zone === undefined) {
    const all = sets.flatMap(({ policies }) => policies);
    const own = all.filter(({ team }) => owner !== undefined && team === owner);
    const policies = own.length > 0 ? [...own, ...all.filter(({ team }) => team === undefined)] : all;
    const times = policies.flatMap((policy) => ruleOf(policy).times(policy));
    return times.map(zoneOf).find(Boolean) ?? 'UTC';
  }
  if (IANAZone.isValidZone(zone)) return zone;
  throw new UserError(`--zone: "${zone}" is not a time zone; write an IANA name such as Europe/Berlin, or UTC`);
}

function zoneOf(spec: TimeSpec): string | undefined {
  return 'zone' in spec ? spec.zone : undefined;
}

/** A local day, with its cells within the drawn span. */
export interface Day {
  /** `Mon 2 Mar`. */
  label: string;
  cells: readonly Span[];
  /** The number of cells of a whole day. */
  wholeCells: number;
}

/** Divides a span into local days, and each day into cells of `hoursPerCell` local hours, a divisor of 24. */
export function daysOf({ fromMs, toMs }: Span, { zone, hoursPerCell }: { zone: string; hoursPerCell: number }): Day[] {
  const days: Day[] = [];
  let day = DateTime.fromMillis(fromMs, { zone }).startOf('day');
  while (day.toMillis() < toMs) {
    const next = day.plus({ days: 1 }).startOf('day');
    const starts = Array.from({ length: 24 / hoursPerCell }, (_, index) => atHour(day, index * hoursPerCell));
    const cells = starts.map((startMs, index) => ({ fromMs: startMs, toMs: starts[index + 1] ?? next.toMillis() }));
    days.push({
      label: day.toFormat('ccc d LLL', { locale: 'en' }),
      // When clocks go forward, an hour and its cell may be missing.
      cells: cells.filter((cell) => cell.fromMs < cell.toMs && overlaps(cell, { fromMs, toMs })),
      wholeCells: starts.length,
    });
    day = next;
  }
  return days;
}

/** Hour 0 is the start of the day, which is later than 0:00 where a change of the clocks skips midnight. */
function atHour(day: DateTime, hour: number): number {
  return hour === 0 ? day.toMillis() : day.set({ hour }).toMillis();
}
