import { decide } from '../../domain/decide/decide.ts';
import { changesOf } from '../../domain/plan/change.ts';
import type { EvaluateDeps } from '../evaluate/evaluate.ts';
import type { EvaluatedCompute } from '../fleet/fleet.ts';

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
  { rules, overrides }: Pick<EvaluateDeps, 'rules' | 'overrides'>,
  { compute, record }: EvaluatedCompute,
  instantMs: number,
): WriteRank {
  const { baseline, trials } = record;
  const { policies } = rules.current;
  const decision = decide({ policies, compute, baseline, trials, holds: overrides.holds, instantMs });
  return changesOf(decision, compute).toSorted(compareRanks)[0] ?? LAST;
}

/** Those to which something is to be written now. */
export function inOrderOfWriting(evaluatedComputes: readonly EvaluatedCompute[]): EvaluatedCompute[] {
  const rank = ({ plan }: EvaluatedCompute) => plan.actions[0] ?? { raises: false, priority: 0 };
  return evaluatedComputes
    .filter(({ plan }) => plan.verdict === 'act')
    .toSorted((a, b) => compareRanks(rank(a), rank(b)));
}
