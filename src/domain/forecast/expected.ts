/** The expected usage of a compute if its clients come as in past weeks. Sizes in CU; instants are milliseconds since the epoch. */

import type { ComputeSettings } from '../compute/compute.ts';
import { isAtMinimum, maySleep } from '../compute/compute-units.ts';
import { type Estimate, type Range, withMiddle } from '../estimate.ts';
import { getOrAdd } from '../grouping.ts';
import { HOUR_MS } from '../time/units.ts';
import type { UsageBucket } from '../usage/usage.ts';
import type { Segment } from './forecast.ts';

const WEEK_HOURS = 168;

/** The minimum number of known hours. The control API returns one week, whose newest hours are not known yet. */
export const MIN_HOURS = 6 * 24;

/** The average usage of each known hour, in CU, by hour of the week from Monday 00:00 UTC. */
export type UsageProfile = readonly (readonly number[])[];

/** The usage by hour of the week; undefined if too few hours are known. */
export function usageProfile(buckets: readonly UsageBucket[]): UsageProfile | undefined {
  const profile: number[][] = Array.from({ length: WEEK_HOURS }, () => []);
  const hours = knownHours(buckets);
  for (const { startMs, cuSeconds } of hours) profile[hourOfWeek(startMs)]?.push(cuSeconds / 3600);
  return hours.length < MIN_HOURS ? undefined : profile;
}

/** The whole hours with known usage. */
export function knownHours(buckets: readonly UsageBucket[]): { startMs: number; cuSeconds: number }[] {
  return buckets.flatMap(({ startMs, seconds, cuSeconds }) =>
    seconds === 3600 && cuSeconds !== null ? [{ startMs, cuSeconds }] : [],
  );
}

/**
 * The expected CU-hours of segments, if each hour is like the same hour of the week was while the compute had the settings `measured`.
 * An hour of the week without data is like the same hour on other days.
 */
export function expectedCuHours(
  segments: readonly Segment[],
  profile: UsageProfile,
  measured: ComputeSettings,
): Estimate {
  let [low, high] = [0, 0];
  for (const segment of segments) {
    const byHour = new Map<number, Range>();
    for (let ms = segment.fromMs; ms < segment.toMs; ms = endOfHour(ms)) {
      const hour = hourOfWeek(ms);
      const mean = getOrAdd(byHour, hour, () => meanUse(samplesOf(profile, hour), measured, segment));
      const part = (Math.min(segment.toMs, endOfHour(ms)) - ms) / HOUR_MS;
      low += part * mean.low;
      high += part * mean.high;
    }
  }
  return withMiddle({ low, high });
}

function endOfHour(ms: number): number {
  return (Math.floor(ms / HOUR_MS) + 1) * HOUR_MS;
}

/** The hour of the week from Monday 00:00 UTC; 1970-01-05 was a Monday. */
function hourOfWeek(ms: number): number {
  return (((Math.floor(ms / HOUR_MS) - 4 * 24) % WEEK_HOURS) + WEEK_HOURS) % WEEK_HOURS;
}

function samplesOf(profile: UsageProfile, hour: number): readonly number[] {
  const ofHour = profile[hour] ?? [];
  if (ofHour.length > 0) return ofHour;
  const ofDay = profile.filter((_, other) => other % 24 === hour % 24).flat();
  return ofDay.length > 0 ? ofDay : profile.flat();
}

function meanUse(samples: readonly number[], measured: ComputeSettings, planned: ComputeSettings): Range {
  const mean = { low: 0, high: 0 };
  for (const used of samples) {
    const { low, high } = useInHour(used, measured, planned);
    mean.low += low / samples.length;
    mean.high += high / samples.length;
  }
  return mean;
}

/**
 * The average usage of an hour with the `planned` settings, in CU, if it was `used` with the `measured` settings. The compute was awake for
 * `awakeShare` of the hour, in [0, 1]; if that is unknown, for a share between `used / maximum` and `used / minimum`.
 * - High end: while awake, it had one constant size, and will have the nearest allowed size.
 * - Low end: while awake, it was either at its maximum or at rest. It will rest at the planned minimum or, if it could not sleep before, asleep.
 * Work that the maximum delayed is unknown.
 */
export function useInHour(
  used: number,
  measured: ComputeSettings,
  planned: ComputeSettings,
  awakeShare?: number,
): Range {
  const sizeWithin = (size: number) => Math.min(Math.max(size, planned.minCu), planned.maxCu);
  const restCu = maySleep(planned) ? 0 : planned.minCu;
  if (used <= 0) return { low: restCu, high: restCu };
  const maySleepBefore = maySleep(measured);
  const [leastAwake, mostAwake] = [Math.min(1, used / measured.maxCu), Math.min(1, used / measured.minCu)];
  const awake =
    awakeShare === undefined ? [leastAwake, mostAwake] : [Math.min(mostAwake, Math.max(leastAwake, awakeShare))];
  const shares = maySleepBefore ? awake : [1];
  const highAt = (share: number) => share * sizeWithin(used / share) + (1 - share) * restCu;
  const lowAt = (share: number) => {
    const isFlat = isAtMinimum(used, measured.minCu, share) || measured.minCu === measured.maxCu;
    const atMaximum = isFlat ? 0 : Math.min(share, (used - share * measured.minCu) / (measured.maxCu - measured.minCu));
    const atMinimum = (share - atMaximum) * (maySleepBefore ? planned.minCu : restCu);
    return atMaximum * sizeWithin(measured.maxCu) + atMinimum + (1 - share) * restCu;
  };
  const range = { low: Number.POSITIVE_INFINITY, high: 0 };
  for (const share of shares) {
    const constant = highAt(share);
    range.low = Math.min(range.low, lowAt(share), constant);
    range.high = Math.max(range.high, constant);
  }
  return range;
}

/** The widest range of two settings, either of which a compute may have had while it was measured. */
export function widestSettings(a: ComputeSettings, b: ComputeSettings): ComputeSettings {
  return {
    minCu: Math.min(a.minCu, b.minCu),
    maxCu: Math.max(a.maxCu, b.maxCu),
    suspendTimeoutSeconds: (maySleep(a) || !maySleep(b) ? a : b).suspendTimeoutSeconds,
  };
}
