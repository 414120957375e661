import { describeStep } from '../../domain/decide/trace.ts';

import type { EvaluatedCompute } from '../../domain/evaluate/evaluate.ts';

/** What keeps a compute from the connections that it needs, and what to do; undefined if it has them. */
export function unmetHeadroom({ decision }: Pick<EvaluatedCompute, 'decision'>): string | undefined {
  const step = decision.trace.find(({ code }) => code === 'headroom_unmet');
  return step && describeStep(step);
}
