/** Determines which usage in an answer is known. A missing bucket counts as zero only if its data must have arrived. */
import { groupBy } from '../grouping.ts';
import { sum } from '../sum.ts';
import type { Span } from '../time/span.ts';
import { DAY_MS, HOUR_MS } from '../time/units.ts';
import type { UsageLowerBound } from './lower-bound.ts';
import type { UsageBucket, UsageSeries, UsageUnit } from './usage.ts';

/** Usage arrives up to an hour late, so a bucket counts as complete only this long after its end. */
const FINAL_AFTER_MS = 2 * HOUR_MS;

/** The share of the lower bound that a bucket must show to be plausible. */
const PLAUSIBLE_SHARE = 0.9;

/** The answer to a query for the buckets of a span: all units of an account, or of some of its projects. */
export interface UsageAnswer extends Span {
  /** The length of the buckets. */
  seconds: number;
  /** CU-seconds by start of the bucket; buckets without usage are missing. */
  units: readonly (UsageUnit & { buckets: ReadonlyMap<number, number> })[];
}

/**
 * The instant up to which an account's usage has certainly arrived: the start of the latest bucket in which any unit has some. Later
 * missing buckets may mean sleep or late data. −Infinity if nothing was used.
 */
export function arrivedUntil({ units }: UsageAnswer): number {
  let latestMs = Number.NEGATIVE_INFINITY;
  for (const { buckets } of units) {
    for (const [startMs, cuSeconds] of buckets) if (cuSeconds > 0) latestMs = Math.max(latestMs, startMs);
  }
  return latestMs;
}

/** The buckets of each unit in an answer read at `nowMs`, oldest first; null where the usage is unknown. */
export function knownBuckets(
  answer: UsageAnswer,
  {
    nowMs,
    arrivedUntilMs,
    lowerBound = () => undefined,
  }: { nowMs: number; arrivedUntilMs: number; lowerBound?: UsageLowerBound },
): UsageSeries[] {
  const { seconds, fromMs, toMs, units } = answer;
  return units.map(({ projectId, branchId, buckets: shownBuckets }) => {
    const buckets: UsageBucket[] = [];
    for (let startMs = fromMs; startMs < toMs; startMs += seconds * 1000) {
      const endMs = startMs + seconds * 1000;
      const cuSeconds = shownBuckets.get(startMs) ?? 0;
      const isFinal = endMs + FINAL_AFTER_MS <= nowMs && endMs <= arrivedUntilMs;
      const atLeast = isFinal ? (lowerBound({ projectId, branchId }, startMs, seconds) ?? 0) : 0;
      const isKnown = isFinal && cuSeconds >= PLAUSIBLE_SHARE * atLeast;
      buckets.push({ startMs, seconds, cuSeconds: isKnown ? cuSeconds : null });
    }
    return { projectId, branchId, buckets };
  });
}

/**
 * Joins days and hours of one unit into one series. A day is represented by its hours if all are known and agree with its total up to rounding;
 * otherwise by the total, if that is known. Both lists cover whole UTC days, oldest first.
 */
export function joinDaysAndHours(days: readonly UsageBucket[], hours: readonly UsageBucket[]): UsageBucket[] {
  const hoursOfDay = groupBy(hours, ({ startMs }) => startMs - (startMs % DAY_MS));
  const totals = new Map(days.map((day) => [day.startMs, day]));
  const starts = [...new Set([...totals.keys(), ...hoursOfDay.keys()])].sort((a, b) => a - b);
  return starts.flatMap((startMs) => {
    const total = totals.get(startMs);
    const ofDay = hoursOfDay.get(startMs) ?? [];
    if (total === undefined || (total.cuSeconds === null && ofDay.length > 0)) return ofDay;
    return hoursAgree(total, ofDay) ? ofDay : [total];
  });
}

function hoursAgree({ cuSeconds: total }: UsageBucket, hours: readonly UsageBucket[]): boolean {
  const known = hours.flatMap(({ cuSeconds }) => cuSeconds ?? []);
  // Each hour is rounded to whole CU-seconds.
  return total !== null && known.length === 24 && hours.length === 24 && Math.abs(sum(known) - total) <= 24;
}
