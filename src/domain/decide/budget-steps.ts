/**
 * When steps of budgets limit a compute. The spending decides this, not a policy; so it is passed with the policies as data. Instants are
 * milliseconds since the epoch.
 */

import type { Compute } from '../compute/compute.ts';
import type { CompiledPolicies } from '../policy/compiled-policies.ts';
import type { PartialDisruption } from '../policy/disruption.ts';
import { asKind } from '../policy/kinds/kinds.ts';
import { hashFraction } from '../policy/select.ts';
import { type BudgetStep, type BudgetTerms, type StepSpan, sameStep } from '../spend/terms.ts';

/** After the end of a step computes follow over this time, each at an instant of its own, so that they are no herd for the control API. */
export const SPREAD_MS = 6 * 60 * 60_000;

type Terms = BudgetTerms<PartialDisruption>;

/** True if limits of a budget may hold for the compute: not where it is on a default or protected branch, or that is not known. */
export function mayLimit({ includeProtected }: Pick<Terms, 'includeProtected'>, { branchRoles }: Compute): boolean {
  if (includeProtected) return true;
  return branchRoles !== undefined && !branchRoles.includes('default') && !branchRoles.includes('protected');
}

/** When an ended step stops limiting a compute. */
function endFor({ untilMs }: StepSpan, { computeId }: Compute): number {
  return untilMs + Math.floor(hashFraction(`budget ${computeId}`) * SPREAD_MS);
}

/** The steps of a budget that limit a compute at an instant, in the order of the policy. */
export function stepsLimiting(
  spans: readonly StepSpan[],
  { policy, terms, compute, instantMs }: { policy: string; terms: Terms; compute: Compute; instantMs: number },
): BudgetStep<PartialDisruption>[] {
  if (spans.length === 0 || !mayLimit(terms, compute)) return [];
  const active = spans.filter(
    (span) =>
      span.policy === policy &&
      span.account === compute.account &&
      span.fromMs <= instantMs &&
      instantMs < endFor(span, compute),
  );
  return terms.steps.filter((step) => step.limits && active.some((span) => sameStep(span, step)));
}

/** The instants at which steps begin and end to limit a compute, whatever else decides. */
export function stepInstants(policies: CompiledPolicies, compute: Compute): number[] {
  return spansOf(policies, compute).flatMap((span) => [span.fromMs, endFor(span, compute)]);
}

/** The latest instant at or before `nowMs` at which a step ended to limit a compute; undefined if none has. */
export function lastStepEnd(policies: CompiledPolicies, compute: Compute, nowMs: number): number | undefined {
  const ends = spansOf(policies, compute).map((span) => endFor(span, compute));
  const past = ends.filter((endMs) => endMs <= nowMs);
  return past.length === 0 ? undefined : Math.max(...past);
}

function spansOf({ budgetSteps, set, selecting }: CompiledPolicies, compute: Compute): StepSpan[] {
  if (budgetSteps.length === 0) return [];
  const budgets = selecting(compute).flatMap((index) => {
    const policy = asKind(set.policies[index], 'budget');
    return policy && mayLimit(policy, compute) ? [policy] : [];
  });
  return budgetSteps.filter(
    (span) =>
      span.account === compute.account &&
      budgets.some(({ name, steps }) => name === span.policy && steps.some((step) => sameStep(step, span))),
  );
}
