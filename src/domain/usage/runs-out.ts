/** Predicts when a project has used up what its plan includes in a billing period. */
import { HOUR_MS } from '../time/units.ts';
import type { BillingMonth } from './month.ts';
import { type KnownDays, type Projection, projectMonth } from './projection.ts';

/** The CU-hours per project and billing period that the free plan includes. Source: the vendor's prices, 2026-11. */
export const FREE_CU_HOURS = 100;

/** An 80 % range of instants, in milliseconds since the epoch. */
export interface RunsOut {
  /** The end of the period if running out is unlikely, but possible. */
  earliestMs: number;
  /** The median. Absent if the limit is more likely to last. */
  midMs?: number;
  /** Absent if the limit may also last. */
  latestMs?: number;
}

/**
 * Predicts when `limit` is used up, to the hour: when each end of the projection reaches it. Undefined if too few days are known, or if it
 * will last: even the middle plus twice the distance to the upper end (99.5 % of a normal distribution) stays below it. `spent` and the
 * days have the unit of the limit.
 */
export function runsOut(
  days: KnownDays,
  { month, spent, limit }: { month: BillingMonth; spent: number; limit: number },
): RunsOut | undefined {
  const { untilMs, toMs } = month;
  if (spent >= limit) return { earliestMs: untilMs, midMs: untilMs, latestMs: untilMs };
  const reached = (end: (projected: Projection) => number) =>
    firstHour(untilMs, toMs, (atMs) => {
      const projected = projectMonth(days, { month: { ...month, toMs: atMs }, spent, unknownHours: 0 });
      return projected !== undefined && end(projected) >= limit;
    });
  if (reached(({ mid, high }) => 2 * high - mid) === undefined) return undefined;
  const [earliestMs, midMs, latestMs] = [
    reached(({ high }) => high),
    reached(({ mid }) => mid),
    reached(({ low }) => low),
  ];
  return {
    earliestMs: earliestMs ?? toMs,
    ...(midMs !== undefined && { midMs }),
    ...(latestMs !== undefined && { latestMs }),
  };
}

/** The first hour after `fromMs` at which a monotonic condition is true; undefined if it is not true at `toMs` either. */
function firstHour(fromMs: number, toMs: number, isTrue: (atMs: number) => boolean): number | undefined {
  if (!isTrue(toMs)) return undefined;
  let [low, high] = [1, Math.ceil((toMs - fromMs) / HOUR_MS)];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isTrue(fromMs + middle * HOUR_MS)) high = middle;
    else low = middle + 1;
  }
  return Math.min(fromMs + low * HOUR_MS, toMs);
}
