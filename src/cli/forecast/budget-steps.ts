import { type BudgetOutlook, expectedSteps } from '../../domain/budget/expected-steps.ts';
import { nextDecisionMs } from '../../domain/budget/state.ts';
import { stepText } from '../../domain/budget/terms.ts';
import type { CompiledPolicies } from '../../domain/policy/compiled-policies.ts';
import { isoInstant } from '../../domain/time/instants.ts';

export interface KnownBudgets {
  policies: Pick<CompiledPolicies, 'set'>;
  budgets: readonly BudgetOutlook[];
  /** Milliseconds since the epoch. */
  nowMs: number;
}

/** Steps that don't limit now, and when they are expected: null where that is not before the month ends, or not known. */
export function budgetStepsJson({ policies, budgets, nowMs }: KnownBudgets) {
  return budgets.flatMap((outlook) => {
    const policy = policies.set.policies.find(({ name }) => name === outlook.policy);
    if (policy?.kind !== 'budget') return [];
    const decidedMs = nextDecisionMs(policy, outlook.fromMs, nowMs);
    return expectedSteps(policy, outlook, { nowMs, decidedMs }).map(({ account, step, atMs }) => ({
      ...{ policy: policy.name, account, step: stepText(step) },
      at: { low: instant(atMs.low), mid: instant(atMs.mid), high: instant(atMs.high) },
    }));
  });
}

function instant(ms: number | null): string | null {
  return ms === null ? null : isoInstant(ms);
}
