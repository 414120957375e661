/** When a project has used what its plan includes in a billing period. */
import { HOUR_MS } from '../time/units.ts';
import type { BillingMonth } from './month.ts';
import { type KnownDays, type Projection, projectMonth } from './projection.ts';

/** What the free plan includes for each project and billing period, in CU-hours; the vendor's figure as of 2026-11. */
export const FREE_CU_HOURS = 100;

/** An 80 % range of instants, in milliseconds since the epoch. */
export interface RunsOut {
  /** The end of the period where that it runs out is unlikely, but not ruled out. */
  earliestMs: number;
  /** As likely before as after. Absent if it is more likely to last. */
  midMs?: number;
  /** Absent if it may also last. */
  latestMs?: number;
}

/**
 * When `limit` will be used, to the hour: where each end of the projection reaches it. Undefined if it lasts, which is said only where
 * twice the distance from the middle to the upper end is below the limit too (99.5 % of a normal distribution), or if too few days are
 * known to say. `spent` and the days have the unit of the limit.
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

/** The first hour after `fromMs` at which it is true, of a condition that stays true once it is; undefined if it never is up to `toMs`. */
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
