/** What a compute will use if its clients come as they did in the weeks before. Sizes in CU; instants are milliseconds since the epoch. */
import type { ComputeSettings } from '../compute/compute.ts';
import { maySleep } from '../compute/compute-units.ts';
import type { UsageBucket } from '../usage/usage.ts';
import type { Segment } from './walk.ts';

const HOUR_MS = 3_600_000;
const WEEK_HOURS = 168;

/** With less than a week of known hours nothing is expected. */
export const FEWEST_HOURS = WEEK_HOURS;

/** Measurements are rounded; so much above the minimum is still the minimum. */
const FLAT = 1.03;

/** An estimate: the ends differ where the measured usage does not tell how long the compute was awake. */
export interface Expected {
  low: number;
  mid: number;
  high: number;
}

/** What a compute used on average in hours that are known, in CU, by hour of the week from Monday 00:00 UTC. */
export type UsageProfile = readonly (readonly number[])[];

/** Undefined if too little is known. */
export function usageProfile(buckets: readonly UsageBucket[]): UsageProfile | undefined {
  const profile: number[][] = Array.from({ length: WEEK_HOURS }, () => []);
  const hours = knownHours(buckets);
  for (const { startMs, cuSeconds } of hours) profile[hourOfWeek(startMs)]?.push(cuSeconds / 3600);
  return hours.length < FEWEST_HOURS ? undefined : profile;
}

/** The whole hours of which the usage is known. */
export function knownHours(buckets: readonly UsageBucket[]): { startMs: number; cuSeconds: number }[] {
  return buckets.flatMap(({ startMs, seconds, cuSeconds }) =>
    seconds === 3600 && cuSeconds !== null ? [{ startMs, cuSeconds }] : [],
  );
}

/**
 * The CU-hours of segments, if each hour is like those of the same hour of the week that were measured while the compute had `had`. An hour
 * of the week that was never measured is like the same hour of other days.
 */
export function expectedCuHours(segments: readonly Segment[], profile: UsageProfile, had: ComputeSettings): Expected {
  const sum = { low: 0, mid: 0, high: 0 };
  for (const segment of segments) {
    const byHour = new Map<number, Expected>();
    for (let ms = segment.fromMs; ms < segment.toMs; ms = endOfHour(ms)) {
      const hour = hourOfWeek(ms);
      const mean = byHour.get(hour) ?? meanUse(samplesOf(profile, hour), had, segment);
      byHour.set(hour, mean);
      const part = (Math.min(segment.toMs, endOfHour(ms)) - ms) / HOUR_MS;
      for (const end of ['low', 'mid', 'high'] as const) sum[end] += part * mean[end];
    }
  }
  return sum;
}

function endOfHour(ms: number): number {
  return (Math.floor(ms / HOUR_MS) + 1) * HOUR_MS;
}

/** 1970-01-05 was a Monday. */
function hourOfWeek(ms: number): number {
  return (((Math.floor(ms / HOUR_MS) - 4 * 24) % WEEK_HOURS) + WEEK_HOURS) % WEEK_HOURS;
}

function samplesOf(profile: UsageProfile, hour: number): readonly number[] {
  const own = profile[hour] ?? [];
  if (own.length > 0) return own;
  const ofDay = profile.filter((_, other) => other % 24 === hour % 24).flat();
  return ofDay.length > 0 ? ofDay : profile.flat();
}

function meanUse(samples: readonly number[], had: ComputeSettings, will: ComputeSettings): Expected {
  const sum = { low: 0, mid: 0, high: 0 };
  for (const used of samples) {
    const { low, high } = useInHour(used, had, will);
    sum.low += low / samples.length;
    sum.high += high / samples.length;
  }
  return { ...sum, mid: (sum.low + sum.high) / 2 };
}

/**
 * What an hour in which a compute used `used` CU on average would use with other settings, in CU. It was awake from `used / maximum` to
 * `used / minimum` of the hour, and then had the size that makes it `used`; with other settings it has the nearest size that they allow. Of a
 * compute that never slept only the work above its minimum tells that it was needed.
 */
export function useInHour(used: number, had: ComputeSettings, will: ComputeSettings): { low: number; high: number } {
  const within = (size: number) => Math.min(Math.max(size, will.minCu), will.maxCu);
  const sleeps = maySleep(will);
  if (used <= 0) return sleeps ? { low: 0, high: 0 } : { low: will.minCu, high: will.minCu };
  if (!maySleep(had)) {
    const work = used > FLAT * had.minCu ? Math.min(used - had.minCu, will.maxCu) : 0;
    return { low: sleeps ? Math.min(work, within(used)) : within(used), high: within(used) };
  }
  const asleep = sleeps ? 0 : will.minCu;
  const useAt = (share: number) => share * within(used / share) + (1 - share) * asleep;
  const [least, most] = [Math.min(1, used / had.maxCu), Math.min(1, used / had.minCu)];
  const ends = [useAt(least), useAt(most)];
  return { low: Math.min(...ends), high: Math.max(...ends) };
}

/** The widest of two settings: a compute may have had either while it was measured. */
export function either(one: ComputeSettings, two: ComputeSettings): ComputeSettings {
  const isNever = !maySleep(one) && !maySleep(two);
  return {
    minCu: Math.min(one.minCu, two.minCu),
    maxCu: Math.max(one.maxCu, two.maxCu),
    suspendTimeoutSeconds: isNever || maySleep(one) ? one.suspendTimeoutSeconds : two.suspendTimeoutSeconds,
  };
}
