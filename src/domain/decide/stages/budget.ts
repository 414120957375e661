/**
 * Budget steps that are reached limit computes. When they are reached depends on spending (domain/spend), so their spans are passed as data
 * along with the policies. Instants are milliseconds since the epoch.
 */
import { type Compute, FIELD_GROUPS } from '../../compute/compute.ts';
import type { CompiledPolicies } from '../../policy/compiled-policies.ts';
import type { PartialDisruption } from '../../policy/disruption.ts';
import type { BudgetPolicy } from '../../policy/kinds/budget.ts';
import { asKind, policiesOfKind } from '../../policy/kinds/kinds.ts';
import type { PolicySet } from '../../policy/policy.ts';
import { hashFraction } from '../../policy/select.ts';
import { STEP_END_SPREAD_MS, type StepSpan, type StepThreshold, sameStep } from '../../spend/terms.ts';
import { type StageInput, stage } from './draft.ts';
import { clampGroup, type StepBounds } from './limits.ts';

/** The disruption rules of steps without their own: only the sizes of sleeping computes are lowered, without a deadline. */
const WHILE_ASLEEP: PartialDisruption = { lower: { when: 'idle', atDeadline: 'apply' } };

/** True if a budget may limit the compute. Unless `includeProtected` is set, computes on default, protected or unknown branches are exempt. */
function mayLimit({ includeProtected }: { includeProtected: boolean }, { branchRoles }: Compute): boolean {
  if (includeProtected) return true;
  return branchRoles !== undefined && !branchRoles.includes('default') && !branchRoles.includes('protected');
}

/** The instant at which an ended step stops limiting this compute. It differs by compute, to spare the control API. */
function limitEndMs({ untilMs }: StepSpan, { computeId }: Compute): number {
  return untilMs + Math.floor(hashFraction(`budget ${computeId}`) * STEP_END_SPREAD_MS);
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

/** The budget steps that limit the compute now, each with its policy, in the order of the policies. */
export function limitingSteps({ effective, compute, instantMs, budgetSteps }: StageInput<'budget'>) {
  const active = budgetSteps.filter(
    (span) => span.account === compute.account && span.fromMs <= instantMs && instantMs < limitEndMs(span, compute),
  );
  if (active.length === 0) return [];
  return effective.budget.flatMap(({ policy, policyIndex, terms }) => {
    if (!mayLimit(terms, compute)) return [];
    const isReached = (step: StepThreshold) =>
      active.some((span) => span.policy === policy.name && sameStep(span, step));
    return terms.steps.filter((step) => step.limits && isReached(step)).map((step) => ({ policy, policyIndex, step }));
  });
}

/** The enforced budgets that have limiting steps, with only those steps. */
export function limitingBudgets({ policies }: PolicySet): Pick<BudgetPolicy, 'name' | 'steps'>[] {
  return policiesOfKind(policies, 'budget').flatMap((policy) => {
    if (policy.mode === 'observe') return [];
    const steps = policy.steps.filter(({ limits }) => limits !== undefined);
    return steps.length > 0 ? [{ name: policy.name, steps }] : [];
  });
}

/**
 * After limits and before headroom: clamps to the budget steps that have been reached. A raise up to their bounds keeps the disruption
 * rules of the policy that wants it.
 */
export const clampToBudgetSteps = stage(['budget'], (draft, input) => {
  const bounds = limitingSteps(input).map(({ policy, policyIndex, step }): StepBounds => {
    const disruption = step.disruption ?? { ...draft.deciders.size?.policy?.disruption, ...WHILE_ASLEEP };
    return {
      type: 'bounds',
      policy: { ...policy, disruption },
      policyIndex,
      hard: false,
      ranges: step.limits ?? {},
      budgetStep: { at: step.at, of: step.of },
    };
  });
  for (const group of FIELD_GROUPS) clampGroup(draft, input, group, bounds, 'budget_step');
});
