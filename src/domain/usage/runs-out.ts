/** Predicts when a project has used up what its plan includes in a billing period. */
import { getOrAdd } from '../grouping.ts';
import { firstIndex } from '../sorted.ts';
import { sum } from '../sum.ts';
import { DAY_MS } from '../time/units.ts';
import type { BillingMonth } from './month.ts';
import { NORMAL_QUANTILE_90 } from './normal.ts';
import { type KnownDays, projectedAt } from './projection.ts';

/** The CU-hours per project and billing period that the free plan includes. Source: the vendor's prices, 2026-11. */
export const FREE_CU_HOURS = 100;

/** The 99.5 % quantile of the standard normal distribution. */
const NORMAL_QUANTILE_995 = 2.576;

/** An 80 % range of instants, milliseconds since the epoch. If the limit is used up already, all three are the instant when that happened. */
export interface RunsOut {
  /** The end of the period if running out is unlikely, but possible. */
  earliestMs: number;
  /** When the mean of the projection reaches the limit. Absent if the mean stays below it. */
  midMs?: number;
  /** Absent if the limit may also last. */
  latestMs?: number;
}

/**
 * Predicts when `limit` is used up: the instants at which the low end, the mean and the high end of the projection reach it, at an even rate
 * within a day. If the limit is not used up yet: undefined if too few days are known, or if it surely lasts: even the 99.5 % quantile stays
 * below it. `spent` and the days have the unit of the limit.
 */
export function runsOut(
  days: KnownDays,
  { month, spent, limit }: { month: BillingMonth; spent: number; limit: number },
): RunsOut | undefined {
  if (spent >= limit) {
    const atMs = usedUpAtMs(days, { month, spent, limit });
    return { earliestMs: atMs, midMs: atMs, latestMs: atMs };
  }
  const { untilMs, toMs } = month;
  const ends = dayEnds(untilMs, toMs);
  const projections = new Map<number, ReturnType<typeof projectedAt>>();
  const projectedTo = (day: number) =>
    getOrAdd(projections, day, () =>
      projectedAt(days, { month: { ...month, toMs: ends[day] ?? toMs }, spent, unknown: 0 }),
    );
  const projectedToEnd = projectedTo(ends.length - 1);
  if (!projectedToEnd || projectedToEnd(NORMAL_QUANTILE_995) < limit) return undefined;
  const reachedMs = (z: number): number | undefined => {
    if (projectedToEnd(z) < limit) return undefined;
    const usedBy = (day: number) => (day < 0 ? spent : (projectedTo(day)?.(z) ?? spent));
    const day = firstIndex(ends.length - 1, (index) => usedBy(index) >= limit);
    const before = usedBy(day - 1);
    const after = usedBy(day);
    const startMs = ends[day - 1] ?? untilMs;
    return startMs + ((limit - before) / (after - before)) * ((ends[day] ?? toMs) - startMs);
  };
  const [midMs, latestMs] = [reachedMs(0), reachedMs(-NORMAL_QUANTILE_90)];
  return {
    earliestMs: reachedMs(NORMAL_QUANTILE_90) ?? toMs,
    ...(midMs !== undefined && { midMs }),
    ...(latestMs !== undefined && { latestMs }),
  };
}

/** When the usage so far reached the limit. Each known day is taken as evenly used; the rest of `spent` is spread evenly over the other days. */
function usedUpAtMs(
  days: KnownDays,
  { month: { fromMs, untilMs }, spent, limit }: { month: BillingMonth; spent: number; limit: number },
): number {
  let startMs = fromMs;
  const parts = dayEnds(fromMs, untilMs).map((endMs) => {
    const part = { startMs, ms: endMs - startMs, used: days.get(startMs) };
    startMs = endMs;
    return part;
  });
  const known = sum(parts.map(({ used = 0 }) => used));
  const unknownMs = sum(parts.map(({ ms, used }) => (used === undefined ? ms : 0)));
  const rate = unknownMs > 0 ? Math.max(0, spent - known) / unknownMs : 0;
  // Values of days are estimates. They are scaled so that their sum is the metered usage.
  const scale = known + rate * unknownMs > 0 ? spent / (known + rate * unknownMs) : 0;
  let left = limit;
  for (const { startMs: dayMs, ms, used = rate * ms } of parts) {
    if (used * scale >= left) return dayMs + (used > 0 ? left / (used * scale) : 0) * ms;
    left -= used * scale;
  }
  return untilMs;
}

/** The ends of the days (UTC) of a span, the last one cut. */
function dayEnds(fromMs: number, toMs: number): number[] {
  const ends: number[] = [];
  for (let dayMs = fromMs - (fromMs % DAY_MS) + DAY_MS; dayMs < toMs; dayMs += DAY_MS) ends.push(dayMs);
  return [...ends, toMs];
}
