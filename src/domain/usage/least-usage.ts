/** Lower bounds of usage from when a fleet's computes were awake: an answer that is much smaller is incomplete. */
import type { Compute } from '../compute/compute.ts';
import type { LeastUsage } from './known.ts';
import { type UsageUnit, unitName } from './usage.ts';

/** The smallest compute there is, in CU: the least that one used whose size at the time is not known. */
const SMALLEST_CU = 0.25;

/** `updated_at` moves at the end of the start itself, which takes seconds. */
const START_TAKES_MS = 60_000;

/** So short a stretch says nothing: instants are whole seconds, and usage is rounded. */
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

/** False where nobody can tell, as for a compute that sleeps: falling asleep moves `updated_at`, too. */
function isUnchangedSince({ state, updatedAtMs }: Compute, fromMs: number): boolean {
  return state === 'active' && updatedAtMs !== undefined && updatedAtMs <= fromMs + START_TAKES_MS;
}
