/** The known part of an answer about usage. A missing bucket is zero only if its time is known to have arrived. */

import { DateTime } from 'luxon';
import type { Compute } from '../compute/compute.ts';
import { DAY_MS, HOUR_MS } from '../time/units.ts';
import { type UsageBucket, type UsageSeries, type UsageUnit, unitName } from './usage.ts';

/** The start of the calendar month (UTC) this many months from that of an instant, milliseconds since the epoch. */
export function monthStart(ms: number, months = 0): number {
  return DateTime.fromMillis(ms, { zone: 'utc' }).startOf('month').plus({ months }).toMillis();
}

/** Usage arrives up to an hour late, so a bucket is not complete before this time after its end. */
const FINAL_AFTER_MS = 2 * HOUR_MS;

/** The share of a compute's least usage while awake that a bucket must show. */
const PLAUSIBLE_SHARE = 0.9;

/** A whole answer: all units of an account, or of some of its projects, with the buckets that it shows of each. */
export interface UsageAnswer {
  /** The length of its buckets. */
  seconds: number;
  /** From the start of the first bucket that was asked for to the end of the last. */
  fromMs: number;
  toMs: number;
  /** CU-seconds by start of the bucket; buckets without usage are missing. */
  units: readonly (UsageUnit & { buckets: ReadonlyMap<number, number> })[];
}

/** The lower bound of a unit's usage in a bucket, in CU-seconds, from when it was awake; undefined if nothing is known. */
export type LeastUsage = (unit: UsageUnit, startMs: number, seconds: number) => number | undefined;

/**
 * The instant up to which the usage of an account has surely arrived: the start of the latest bucket in which any unit has some. Later
 * usage may have stalled, which looks like sleep. Minus infinity if nothing was used.
 */
export function arrivedUntil({ units }: UsageAnswer): number {
  let latest = Number.NEGATIVE_INFINITY;
  for (const { buckets } of units) {
    for (const [startMs, cuSeconds] of buckets) if (cuSeconds > 0 && startMs > latest) latest = startMs;
  }
  return latest;
}

/** Each unit's buckets of an answer that was read at `nowMs`, oldest first; null where the usage is not known. */
export function knownBuckets(
  answer: UsageAnswer,
  { nowMs, arrivedUntilMs, least = () => undefined }: { nowMs: number; arrivedUntilMs: number; least?: LeastUsage },
): UsageSeries[] {
  const { seconds, fromMs, toMs, units } = answer;
  return units.map(({ projectId, branchId, buckets: shown }) => {
    const buckets: UsageBucket[] = [];
    for (let startMs = fromMs; startMs < toMs; startMs += seconds * 1000) {
      const endMs = startMs + seconds * 1000;
      const cuSeconds = shown.get(startMs) ?? 0;
      const isFinal = endMs + FINAL_AFTER_MS <= nowMs && endMs <= arrivedUntilMs;
      const atLeast = isFinal ? (least({ projectId, branchId }, startMs, seconds) ?? 0) : 0;
      const isKnown = isFinal && cuSeconds >= PLAUSIBLE_SHARE * atLeast;
      buckets.push({ startMs, seconds, cuSeconds: isKnown ? cuSeconds : null });
    }
    return { projectId, branchId, buckets };
  });
}

/**
 * Days and hours of one unit as one series: a day's total wins where it is known and its hours are not, or differ by more than
 * their rounding. Both have whole UTC days of buckets, oldest first.
 */
export function joinDaysAndHours(days: readonly UsageBucket[], hours: readonly UsageBucket[]): UsageBucket[] {
  const hoursOfDay = new Map<number, UsageBucket[]>();
  for (const hour of hours) {
    const dayMs = hour.startMs - (hour.startMs % DAY_MS);
    const known = hoursOfDay.get(dayMs);
    if (known) known.push(hour);
    else hoursOfDay.set(dayMs, [hour]);
  }
  const totals = new Map(days.map((day) => [day.startMs, day]));
  const starts = [...new Set([...totals.keys(), ...hoursOfDay.keys()])].sort((a, b) => a - b);
  return starts.flatMap((startMs) => {
    const total = totals.get(startMs);
    const ofDay = hoursOfDay.get(startMs) ?? [];
    if (total === undefined || (total.cuSeconds === null && ofDay.length > 0)) return ofDay;
    return agree(total, ofDay) ? ofDay : [total];
  });
}

function agree({ cuSeconds: total }: UsageBucket, hours: readonly UsageBucket[]): boolean {
  if (total === null || hours.length !== 24) return false;
  let sum = 0;
  for (const { cuSeconds } of hours) {
    if (cuSeconds === null) return false;
    sum += cuSeconds;
  }
  return Math.abs(sum - total) <= hours.length;
}

/* Lower bounds of usage from when a fleet's computes were awake: an answer that is much smaller is incomplete. */

/** The smallest compute there is, in CU: the least that one used whose size at the time is not known. */
const SMALLEST_CU = 0.25;

/** `updated_at` moves at the end of the start itself, which takes seconds. */
const START_TAKES_MS = 60_000;

/** A shorter stretch says nothing: instants are whole seconds, and usage is rounded. */
const LEAST_AWAKE_SECONDS = 60;

/** A stretch in which a compute was awake, and the least size that it may have had then. */
interface Awake {
  fromMs: number;
  toMs: number;
  leastCu: number;
}

/**
 * Lower bounds from computes as they are at `nowMs`: each from its last start to now, or to its last activity if it sleeps. The present
 * minimum counts only if the compute has not been changed since that start: a sleeping compute is resized without a start.
 */
export function leastUsageOf(computes: Iterable<Compute>, nowMs: number): LeastUsage {
  const byUnit = new Map<string, Awake[]>();
  for (const compute of computes) {
    const { projectId, branchId, state, startedAtMs: fromMs, lastActiveAtMs } = compute;
    const toMs = state === 'active' ? nowMs : lastActiveAtMs;
    if (fromMs === undefined || toMs === undefined || toMs <= fromMs) continue;
    const leastCu = isUnchangedSince(compute, fromMs) ? compute.minCu : SMALLEST_CU;
    for (const unit of [
      { projectId, branchId },
      { projectId, branchId: null },
    ] satisfies UsageUnit[]) {
      const known = byUnit.get(unitName(unit));
      if (known) known.push({ fromMs, toMs, leastCu });
      else byUnit.set(unitName(unit), [{ fromMs, toMs, leastCu }]);
    }
  }
  return (unit, startMs, seconds) =>
    byUnit.get(unitName(unit))?.reduce((sum, { fromMs, toMs, leastCu }) => {
      const awakeSeconds = (Math.min(toMs, startMs + 1000 * seconds) - Math.max(fromMs, startMs)) / 1000;
      return awakeSeconds < LEAST_AWAKE_SECONDS ? sum : sum + awakeSeconds * leastCu;
    }, 0);
}

/** False where it can't be told, as for a sleeping compute: falling asleep moves `updated_at`, too. */
function isUnchangedSince({ state, updatedAtMs }: Compute, fromMs: number): boolean {
  return state === 'active' && updatedAtMs !== undefined && updatedAtMs <= fromMs + START_TAKES_MS;
}
