import { changesOf } from '../domain/change.ts';
import { decide } from '../domain/decide.ts';
import type { Context } from './context.ts';
import type { Conclusion } from './fleet.ts';

/** Where a write stands among others that are due at the same time. */
export interface WriteRank {
  raises: boolean;
  /** Of the policy that decides. */
  priority: number;
}

/** Of a compute that nothing is written to. */
const LAST: WriteRank = { raises: false, priority: Number.NEGATIVE_INFINITY };

/** Raises before lowerings: who needs more needs it now. Then by priority. */
export function compareRanks(a: WriteRank, b: WriteRank): number {
  return Number(b.raises) - Number(a.raises) || b.priority - a.priority;
}

/** How urgently a compute is going to be written to at an instant, milliseconds since the epoch. */
export function rankAt(
  { policies, overrides }: Context,
  { compute, record }: Conclusion,
  instantMs: number,
): WriteRank {
  const { baseline } = record;
  const decision = decide({ policies, compute, baseline, holds: overrides.holds, instantMs });
  return changesOf(decision, compute).toSorted(compareRanks)[0] ?? LAST;
}
