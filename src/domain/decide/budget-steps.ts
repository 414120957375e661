/**
 * When budget steps limit a compute. This follows from spending, not from a policy, so the spans are passed as data along with the
 * policies. Instants are milliseconds since the epoch.
 */

import type { Compute } from '../compute/compute.ts';
import type { CompiledPolicies } from '../policy/compiled-policies.ts';
import type { PartialDisruption } from '../policy/disruption.ts';
import { asKind } from '../policy/kinds/kinds.ts';
import { hashFraction } from '../policy/select.ts';
import { type BudgetStep, type BudgetTerms, type StepSpan, sameStep } from '../spend/terms.ts';

/** After a step has ended, its computes are released over this time, each at its own instant, to spare the control API. */
export const STEP_END_SPREAD_MS = 6 * 60 * 60_000;

type Terms = BudgetTerms<PartialDisruption>;

/** True if a budget may limit the compute. Unless `includeProtected` is set, computes on default, protected or unknown branches are exempt. */
export function mayLimit({ includeProtected }: Pick<Terms, 'includeProtected'>, { branchRoles }: Compute): boolean {
  if (includeProtected) return true;
  return branchRoles !== undefined && !branchRoles.includes('default') && !branchRoles.includes('protected');
}

/** The instant at which an ended step stops limiting this compute. */
function limitEndMs({ untilMs }: StepSpan, { computeId }: Compute): number {
  return untilMs + Math.floor(hashFraction(`budget ${computeId}`) * STEP_END_SPREAD_MS);
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
      instantMs < limitEndMs(span, compute),
  );
  return terms.steps.filter((step) => step.limits && active.some((span) => sameStep(span, step)));
}

/** The instants at which budget steps begin or stop limiting a compute. */
export function stepInstants(policies: CompiledPolicies, compute: Compute): number[] {
  return spansOf(policies, compute).flatMap((span) => [span.fromMs, limitEndMs(span, compute)]);
}

/** The latest instant up to `nowMs` at which a step stopped limiting a compute; undefined if there is none. */
export function lastStepEnd(policies: CompiledPolicies, compute: Compute, nowMs: number): number | undefined {
  const ends = spansOf(policies, compute).map((span) => limitEndMs(span, compute));
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
