import { HOUR_MS } from '../time/units.ts';
import type { UsageBucket } from '../usage/usage.ts';
import type { AwakeHistory } from './intervals.ts';

/** Measurements are rounded; so much above the minimum is still the minimum. */
const FLAT = 1.03;
/** An hour with less awake time says little about the size. */
const LEAST_AWAKE_MS = 60_000;
/** Fewer hours say nothing. */
const LEAST_HOURS = 12;

export interface UsageWhileAwake {
  /** The size on average, in CU, weighted by time; undefined where it is not measured. */
  averageCu?: number;
  /** The share of the measured hours at the minimum size; in the others it was at work. */
  flatShare?: number;
}

/** The size of a compute while it was awake, from the hours in which both are known. */
export function usageWhileAwake({
  compute,
  history,
  hours = [],
}: {
  compute: { minCu: number; maxCu: number };
  history: AwakeHistory;
  hours?: readonly UsageBucket[];
}): UsageWhileAwake {
  if (hours.length < LEAST_HOURS) return {};
  const awakeIn = awakeMsByHour(history);
  let [cuSeconds, seconds, flat, counted] = [0, 0, 0, 0];
  for (const hour of hours) {
    const awakeMs = hour.seconds * 1000 === HOUR_MS ? (awakeIn(hour.startMs) ?? 0) : 0;
    if (hour.cuSeconds === null || awakeMs < LEAST_AWAKE_MS) continue;
    cuSeconds += hour.cuSeconds;
    seconds += awakeMs / 1000;
    counted += 1;
    if (hour.cuSeconds <= FLAT * compute.minCu * (awakeMs / 1000)) flat += 1;
  }
  if (counted < LEAST_HOURS) return {};
  const averageCu = Math.min(Math.max(cuSeconds / seconds, compute.minCu), compute.maxCu);
  // A fixed size is the same at work and at rest.
  return compute.minCu === compute.maxCu ? { averageCu } : { averageCu, flatShare: flat / counted };
}

/** With less measured time nothing is said about a month. */
const LEAST_SECONDS = 7 * 24 * 3600;

/**
 * Its average usage over the time of its history, in CU, asleep or awake; undefined where less than a week was measured. Nothing can cost,
 * or save, more.
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
  return seconds < LEAST_SECONDS ? undefined : cuSeconds / seconds;
}

/** The awake time in the hour that begins at an instant, milliseconds; undefined where unknown. */
function awakeMsByHour({ intervals, unknown, fromMs, toMs }: AwakeHistory): (startMs: number) => number | undefined {
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
