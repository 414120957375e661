/** Lower bounds of usage from the awake times of computes: an answer with much less usage is incomplete. */
import type { Compute } from '../compute/compute.ts';
import { groupBy } from '../grouping.ts';
import { type UsageUnit, unitName } from './usage.ts';

/** Returns a lower bound of a unit's usage in a bucket, in CU-seconds, from its awake time; undefined if nothing is known. */
export type UsageLowerBound = (unit: UsageUnit, startMs: number, seconds: number) => number | undefined;

/** The smallest size in CU, assumed for computes whose size at the time is unknown. */
const SMALLEST_CU = 0.25;

/** A start takes seconds, and sets `updated_at` at its end. */
const START_TAKES_MS = 60_000;

/** Shorter spans are ignored: instants are whole seconds, and usage is rounded. */
const MIN_AWAKE_SECONDS = 60;

/**
 * Lower bounds from the state of computes at `nowMs`. Each was awake from its last start until now or, if it sleeps, until its last activity. Its
 * present minimum size counts only if it has not been changed since that start.
 */
export function usageLowerBound(computes: Iterable<Compute>, nowMs: number): UsageLowerBound {
  const awakeSpans = [...computes].flatMap((compute) => {
    const { projectId, branchId, state, startedAtMs: fromMs, lastActiveAtMs } = compute;
    const toMs = state === 'active' ? nowMs : lastActiveAtMs;
    if (fromMs === undefined || toMs === undefined || toMs <= fromMs) return [];
    const leastCu = isUnchangedSince(compute, fromMs) ? compute.minCu : SMALLEST_CU;
    return [branchId, null].map((id) => ({ unit: unitName({ projectId, branchId: id }), fromMs, toMs, leastCu }));
  });
  const byUnit = groupBy(awakeSpans, ({ unit }) => unit);
  return (unit, startMs, seconds) =>
    byUnit.get(unitName(unit))?.reduce((sum, { fromMs, toMs, leastCu }) => {
      const awakeSeconds = (Math.min(toMs, startMs + 1000 * seconds) - Math.max(fromMs, startMs)) / 1000;
      return awakeSeconds < MIN_AWAKE_SECONDS ? sum : sum + awakeSeconds * leastCu;
    }, 0);
}

/** True if the compute has certainly not changed since its start. That is unknown for a sleeping compute: a suspend also sets `updated_at`. */
function isUnchangedSince({ state, updatedAtMs }: Compute, fromMs: number): boolean {
  return state === 'active' && updatedAtMs !== undefined && updatedAtMs <= fromMs + START_TAKES_MS;
}
