import type { Compute } from '../compute/compute.ts';
import { periodStartMs } from '../trial/assignment.ts';
import type { CompiledPolicies } from './compiled-policies.ts';
import { ruleOf } from './kinds/kinds.ts';
import type { TrialPolicy } from './kinds/trial.ts';

/** A period that is frozen for more of its time than this says little about policies. */
const MOST_FROZEN = 0.2;

/** The periods of a trial, from 0, of which policies of kind freeze take more than a fifth, on the average of the computes. */
export function frozenPeriods(
  policies: CompiledPolicies,
  { design }: Pick<TrialPolicy, 'design'>,
  computes: readonly Compute[],
): Set<number> {
  const frozen = new Set<number>();
  for (let period = 0; period < design.periods && computes.length > 0; period += 1) {
    const span = { fromMs: periodStartMs(design, period), untilMs: periodStartMs(design, period + 1) };
    const shares = computes.map((compute) => frozenShare(policies, compute, span));
    if (shares.reduce((sum, share) => sum + share, 0) / shares.length > MOST_FROZEN) frozen.add(period);
  }
  return frozen;
}

function frozenShare(
  policies: CompiledPolicies,
  compute: Compute,
  { fromMs, untilMs }: { fromMs: number; untilMs: number },
): number {
  const freezes = policies.selecting(compute).filter((index) => {
    const policy = policies.set.policies[index];
    return policy !== undefined && ruleOf(policy).stopsWrites;
  });
  let frozenMs = 0;
  for (let ms = fromMs; freezes.length > 0 && ms < untilMs; ) {
    const changes = freezes.flatMap((index) => policies.nextChangeAfter(index, ms) ?? []);
    const nextMs = Math.min(untilMs, ...changes);
    if (policies.effectiveFor(compute, ms).enforced.freeze.length > 0) frozenMs += nextMs - ms;
    ms = nextMs;
  }
  return frozenMs / (untilMs - fromMs);
}
