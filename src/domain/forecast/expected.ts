/** The expected usage of a compute if its clients come as in the weeks before. Sizes in CU; instants are milliseconds since the epoch. */

import type { ComputeSettings } from '../compute/compute.ts';
import { maySleep } from '../compute/compute-units.ts';
import { HOUR_MS } from '../time/units.ts';
import type { UsageBucket } from '../usage/usage.ts';
import type { Segment } from './walk.ts';

const WEEK_HOURS = 168;

/** With fewer known hours nothing is expected. The control API gives the hours of a week, of which the newest are not known yet. */
export const FEWEST_HOURS = 6 * 24;

/** Measurements are rounded; so much above the minimum is still the minimum. */
const FLAT = 1.03;

/** An estimate: the ends differ where the measured usage does not tell how long the compute was awake. */
export interface Expected {
  low: number;
  mid: number;
  high: number;
}

/** Average usage in the known hours, in CU, by hour of the week from Monday 00:00 UTC. */
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
 * The usage with other settings, in CU, of an hour with an average usage of `used` CU. The compute was awake from `used / maximum` to
 * `used / minimum` of the hour. At most it then had the size that makes it `used`, and gets the nearest one that the settings allow. At
 * least it was at its maximum for as long as that takes, and idle in the rest, which a smaller minimum makes cheaper, or asleep if it
 * never slept before. Work that its maximum held back is unknown.
 */
export function useInHour(used: number, had: ComputeSettings, will: ComputeSettings): { low: number; high: number } {
  const within = (size: number) => Math.min(Math.max(size, will.minCu), will.maxCu);
  const asleep = maySleep(will) ? 0 : will.minCu;
  if (used <= 0) return { low: asleep, high: asleep };
  const slept = maySleep(had);
  const shares = slept ? [Math.min(1, used / had.maxCu), Math.min(1, used / had.minCu)] : [1];
  const mostAt = (share: number) => share * within(used / share) + (1 - share) * asleep;
  const leastAt = (share: number) => {
    const isFlat = used <= FLAT * share * had.minCu || had.minCu === had.maxCu;
    const atMaximum = isFlat ? 0 : Math.min(share, (used - share * had.minCu) / (had.maxCu - had.minCu));
    const atMinimum = (share - atMaximum) * (slept ? will.minCu : asleep);
    return atMaximum * within(had.maxCu) + atMinimum + (1 - share) * asleep;
  };
  const high = Math.max(...shares.map(mostAt));
  return { low: Math.min(high, ...shares.flatMap((share) => [leastAt(share), mostAt(share)])), high };
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
