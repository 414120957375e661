import { type ComputeSettings, sameSize } from '../../domain/compute/compute.ts';
import { formatSize, formatSuspendTimeout } from '../../domain/compute/settings-text.ts';
import type { Difference } from '../../domain/forecast/forecast.ts';
import { formatDay, formatTime } from '../forecast/local-time.ts';
import type { ComputeChange } from './compare.ts';

/** Computes that change in the same way at the same times. */
export interface Group {
  changes: ComputeChange[];
  /** What changes, and when. */
  lines: { what: string; when: string[] }[];
}

/** Days that are named one by one; of more only the first and their number. */
const MOST_DAYS = 7;

/** Puts computes together that a reader would see as one change; the largest group first. */
export function groupChanges(changes: readonly ComputeChange[], zone: string): Group[] {
  const groups = new Map<string, Group>();
  for (const change of changes) {
    const lines = linesOf(change.differences, zone);
    const key = JSON.stringify(lines);
    const group = groups.get(key) ?? { changes: [], lines };
    group.changes.push(change);
    groups.set(key, group);
  }
  return [...groups.values()].sort((a, b) => b.changes.length - a.changes.length);
}

function linesOf(differences: readonly Difference[], zone: string): Group['lines'] {
  const byWhat = new Map<string, Difference[]>();
  for (const difference of differences) {
    const what = describeValues(difference.before, difference.after);
    byWhat.set(what, [...(byWhat.get(what) ?? []), difference]);
  }
  return [...byWhat].map(([what, same]) => ({ what, when: timesOf(same, zone) }));
}

/** `size 0.25-1 → 1-4 CU, suspends after 5m → never`. */
function describeValues(before: ComputeSettings, after: ComputeSettings): string {
  const size = sameSize(before, after) ? [] : [`size ${formatSize(before)} → ${formatSize(after)} CU`];
  const [old, now] = [before, after].map(({ suspendTimeoutSeconds }) => formatSuspendTimeout(suspendTimeoutSeconds));
  return [...size, ...(old === now ? [] : [`suspends after ${old} → ${now}`])].join(', ');
}

/** `07:00–08:00 on Mon 2 Mar, Tue 3 Mar`: what happens at the same time of day is told once. */
function timesOf(differences: readonly Difference[], zone: string): string[] {
  const byClock = new Map<string, string[]>();
  for (const { fromMs, toMs } of differences) {
    const day = formatDay(fromMs, zone);
    const ends = formatDay(toMs, zone);
    const long = toMs - fromMs >= 86_400_000 && ends !== day;
    const clock = long
      ? `from ${day} ${formatTime(fromMs, zone)} to ${ends} ${formatTime(toMs, zone)}`
      : clockOf(fromMs, toMs, zone);
    const days = byClock.get(clock) ?? [];
    if (!long) days.push(day);
    byClock.set(clock, days);
  }
  return [...byClock].map(([clock, days]) => (days.length === 0 ? clock : `${clock} on ${listDays(days)}`));
}

function clockOf(fromMs: number, toMs: number, zone: string): string {
  const end = formatTime(toMs, zone);
  return `${formatTime(fromMs, zone)}–${end === '00:00' ? '24:00' : end}`;
}

function listDays(days: readonly string[]): string {
  if (days.length <= MOST_DAYS) return days.join(', ');
  return `${days.length} days, from ${days[0]} to ${days.at(-1)}`;
}
