import { isAtMinimum } from '../compute/compute-units.ts';
import { HOUR_MS } from '../time/units.ts';
import type { UsageBucket } from '../usage/usage.ts';
import type { AwakeHistory } from './intervals.ts';

/** Hours with less awake time are ignored: they say little about the size. */
const MIN_AWAKE_MS = 60_000;
/** The minimum number of measured hours. */
const MIN_HOURS = 12;

export interface UsageWhileAwake {
  /** The average size in CU, weighted by time; absent if not measured. */
  averageCu?: number;
  /** The share of the measured hours at the minimum size, that is, without much work. */
  flatShare?: number;
}

/** The size of a compute while it was awake, from hours with known usage and awake time. */
export function usageWhileAwake({
  compute,
  history,
  hours = [],
}: {
  compute: { minCu: number; maxCu: number };
  history: AwakeHistory;
  hours?: readonly UsageBucket[];
}): UsageWhileAwake {
  if (hours.length < MIN_HOURS) return {};
  const awakeIn = awakeMsByHour(history);
  let [cuSeconds, seconds, flat, counted] = [0, 0, 0, 0];
  for (const hour of hours) {
    const awakeMs = hour.seconds * 1000 === HOUR_MS ? (awakeIn(hour.startMs) ?? 0) : 0;
    if (hour.cuSeconds === null || awakeMs < MIN_AWAKE_MS) continue;
    cuSeconds += hour.cuSeconds;
    seconds += awakeMs / 1000;
    counted += 1;
    if (isAtMinimum(hour.cuSeconds, compute.minCu, awakeMs / 1000)) flat += 1;
  }
  if (counted < MIN_HOURS) return {};
  const averageCu = Math.min(Math.max(cuSeconds / seconds, compute.minCu), compute.maxCu);
  // A fixed size does not show whether the compute was at work.
  return compute.minCu === compute.maxCu ? { averageCu } : { averageCu, flatShare: flat / counted };
}

/** The minimum measured time for statements about a month. */
const MIN_MEASURED_SECONDS = 7 * 24 * 3600;

/**
 * The average usage of a compute over its history, asleep or awake, in CU: the upper bound of any saving. Undefined if less than a week
 * was measured.
 */
export function averageUseCu({
  history,
  hours = [],
}: {
  history: Pick<AwakeHistory, 'fromMs' | 'toMs'>;
  hours?: readonly UsageBucket[];
}): number | undefined {
  let [cuSeconds, seconds] = [0, 0];
  for (const bucket of hours) {
    if (bucket.cuSeconds === null || bucket.startMs < history.fromMs || bucket.startMs >= history.toMs) continue;
    cuSeconds += bucket.cuSeconds;
    seconds += bucket.seconds;
  }
  return seconds < MIN_MEASURED_SECONDS ? undefined : cuSeconds / seconds;
}

/** Returns a look-up of the awake time in the hour that begins at an instant, in milliseconds; undefined if unknown. */
export function awakeMsByHour({
  intervals,
  unknown,
  fromMs,
  toMs,
}: AwakeHistory): (startMs: number) => number | undefined {
  const awake = new Map<number, number>();
  for (const interval of intervals) addHours(awake, interval.startMs, interval.endMs);
  const missing = new Map<number, number>();
  for (const gap of unknown) addHours(missing, gap.fromMs, gap.toMs);
  return (startMs) => {
    if (startMs < fromMs || startMs + HOUR_MS > toMs || missing.has(startMs)) return undefined;
    return awake.get(startMs) ?? 0;
  };
}

function addHours(hours: Map<number, number>, fromMs: number, toMs: number): void {
  for (let hour = Math.floor(fromMs / HOUR_MS) * HOUR_MS; hour < toMs; hour += HOUR_MS) {
    const ms = Math.min(toMs, hour + HOUR_MS) - Math.max(fromMs, hour);
    hours.set(hour, (hours.get(hour) ?? 0) + ms);
  }
}
