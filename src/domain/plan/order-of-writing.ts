import type { Plan } from './plan.ts';

/** What is to be changed now, in the order in which it is written: raises first, then by the priority of the policy. */
export function inOrderOfWriting<T extends { plan: Plan }>(all: readonly T[]): T[] {
  const rank = ({ plan }: T) => plan.actions[0] ?? { raises: false, priority: 0 };
  return all
    .filter(({ plan }) => plan.verdict === 'act')
    .toSorted((a, b) => Number(rank(b).raises) - Number(rank(a).raises) || rank(b).priority - rank(a).priority);
}
