import type { Compute } from '../compute/compute.ts';
import { sum } from '../sum.ts';
import type { Span } from '../time/span.ts';
import { periodStartMs } from '../trial/assignment.ts';
import type { CompiledPolicies } from './compiled-policies.ts';
import { ruleOf } from './kinds/kinds.ts';
import type { TrialPolicy } from './kinds/trial.ts';

/** A period that is frozen for a larger share shows too little of the policies. */
const MAX_FROZEN_SHARE = 0.2;

/** The periods of a trial, counted from 0, that freezes cover by more than a fifth, averaged over the computes. */
export function frozenPeriods(
  policies: CompiledPolicies,
  { design }: Pick<TrialPolicy, 'design'>,
  computes: readonly Compute[],
): Set<number> {
  const frozen = new Set<number>();
  for (let period = 0; period < design.periods && computes.length > 0; period += 1) {
    const span = { fromMs: periodStartMs(design, period), toMs: periodStartMs(design, period + 1) };
    const shares = computes.map((compute) => frozenShare(policies, compute, span));
    if (sum(shares) / shares.length > MAX_FROZEN_SHARE) frozen.add(period);
  }
  return frozen;
}

function frozenShare(policies: CompiledPolicies, compute: Compute, { fromMs, toMs }: Span): number {
  const freezes = policies.selecting(compute).filter((index) => {
    const policy = policies.set.policies[index];
    return policy !== undefined && ruleOf(policy).stopsWrites;
  });
  let frozenMs = 0;
  for (let ms = fromMs; freezes.length > 0 && ms < toMs; ) {
    const changes = freezes.flatMap((index) => policies.nextChangeAfter(index, ms) ?? []);
    const nextMs = Math.min(toMs, ...changes);
    if (policies.effectiveFor(compute, ms).enforced.freeze.length > 0) frozenMs += nextMs - ms;
    ms = nextMs;
  }
  return frozenMs / (toMs - fromMs);
}
