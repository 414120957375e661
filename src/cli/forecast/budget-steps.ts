import { printable } from '../../common/safe-text.ts';
import type { CompiledPolicies } from '../../domain/policy/compiled-policies.ts';
import type { BudgetPolicy } from '../../domain/policy/kinds/budget.ts';
import { asKind, policiesOfKind } from '../../domain/policy/kinds/kinds.ts';
import type { PolicySet } from '../../domain/policy/policy.ts';
import { type BudgetOutlook, expectedSteps, nextDecisionMs } from '../../domain/spend/state.ts';
import { type StepSpan, sameStep, stepText } from '../../domain/spend/terms.ts';
import type { Span } from '../../domain/time/span.ts';
import { isoInstant } from '../../domain/time/units.ts';

export interface KnownBudgets {
  policies: Pick<CompiledPolicies, 'set'>;
  budgets: readonly BudgetOutlook[];
  /** Milliseconds since the epoch. */
  nowMs: number;
}

/** A line for each known step of these policies that limits within the time. */
export function limitingLines(spans: readonly StepSpan[], set: PolicySet, { fromMs, toMs }: Span): string[] {
  const budgets = limitingBudgets(set);
  const isOf = (span: StepSpan) =>
    budgets.some(({ name, steps }) => name === span.policy && steps.some((step) => sameStep(step, span)));
  return spans
    .filter((span) => span.fromMs < toMs && span.untilMs > fromMs && isOf(span))
    .map(({ policy, account, untilMs, ...span }) => {
      const time = `from ${isoInstant(span.fromMs)} to ${isoInstant(untilMs)}`;
      return `${policy} (account ${printable(account)}): ${stepText(span)} limits ${time}.`;
    });
}

/** A note for each budget that may limit, and of which nothing is known. */
export function unknownBudgetNotes(sets: readonly PolicySet[], budgets: readonly { policy: string }[]): string[] {
  const names = new Set(sets.flatMap(limitingBudgets).map(({ name }) => name));
  return [...names]
    .filter((name) => budgets.every(({ policy }) => policy !== name))
    .map((name) => `it is not known what ${name} has spent: no step of it is taken to limit`);
}

/** With the steps that limit. */
function limitingBudgets({ policies }: PolicySet): Pick<BudgetPolicy, 'name' | 'steps'>[] {
  return policiesOfKind(policies, 'budget').flatMap((policy) => {
    if (policy.mode === 'observe') return [];
    const steps = policy.steps.filter(({ limits }) => limits !== undefined);
    return steps.length > 0 ? [{ name: policy.name, steps }] : [];
  });
}

/** Steps that don't limit now, and when they are expected: null where that is not before the month ends, or not known. */
export function budgetStepsJson({ policies, budgets, nowMs }: KnownBudgets) {
  return budgets.flatMap((outlook) => {
    const policy = asKind(
      policies.set.policies.find(({ name }) => name === outlook.policy),
      'budget',
    );
    if (policy === undefined) return [];
    const decisionMs = nextDecisionMs(policy, outlook.fromMs, nowMs);
    return expectedSteps(policy, outlook, { nowMs, decisionMs }).map(({ account, step, atMs }) => ({
      policy: policy.name,
      account,
      step: stepText(step),
      at: { low: instant(atMs.low), mid: instant(atMs.mid), high: instant(atMs.high) },
    }));
  });
}

function instant(ms: number | null): string | null {
  return ms === null ? null : isoInstant(ms);
}
