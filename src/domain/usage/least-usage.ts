/** What a fleet shows of when its computes were awake: usage that is much smaller has not arrived. */
import type { Compute } from '../compute/compute.ts';
import type { LeastUsage } from './known.ts';
import { type UsageUnit, unitName } from './usage.ts';

/** So short a stretch says nothing: instants are whole seconds, and usage is rounded. */
const LEAST_AWAKE_SECONDS = 60;

/** A stretch in which a compute was awake, at its minimum at least. */
interface Awake {
  fromMs: number;
  toMs: number;
  minCu: number;
}

/**
 * What was used at least, as computes are at `nowMs`: each from its last start to now, or to when it was last active if it sleeps. A
 * change of its size would have started it again.
 */
export function leastUsageOf(computes: Iterable<Compute>, nowMs: number): LeastUsage {
  const byUnit = new Map<string, Awake[]>();
  for (const { projectId, branchId, state, startedAtMs: fromMs, lastActiveAtMs, minCu } of computes) {
    const toMs = state === 'active' ? nowMs : lastActiveAtMs;
    if (fromMs === undefined || toMs === undefined || toMs <= fromMs) continue;
    for (const unit of [
      { projectId, branchId },
      { projectId, branchId: null },
    ] satisfies UsageUnit[]) {
      const known = byUnit.get(unitName(unit));
      if (known) known.push({ fromMs, toMs, minCu });
      else byUnit.set(unitName(unit), [{ fromMs, toMs, minCu }]);
    }
  }
  return (unit, startMs, seconds) =>
    byUnit.get(unitName(unit))?.reduce((sum, { fromMs, toMs, minCu }) => {
      const awakeSeconds = (Math.min(toMs, startMs + 1000 * seconds) - Math.max(fromMs, startMs)) / 1000;
      return awakeSeconds < LEAST_AWAKE_SECONDS ? sum : sum + awakeSeconds * minCu;
    }, 0);
}
