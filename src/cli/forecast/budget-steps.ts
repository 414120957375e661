import { printable } from '../../common/safe-text.ts';
import { limitingBudgets } from '../../domain/decide/stages/budget.ts';
import { asKind } from '../../domain/policy/kinds/kinds.ts';
import type { PolicySet } from '../../domain/policy/policy.ts';
import { type BudgetOutlook, expectedSteps, nextDecisionMs } from '../../domain/spend/state.ts';
import { type StepSpan, sameStep, stepText } from '../../domain/spend/terms.ts';
import type { Span } from '../../domain/time/span.ts';
import { isoInstant } from '../../domain/time/units.ts';

/** A line for each budget step that limits within the span, if these policies still have the step. */
export function limitingLines(spans: readonly StepSpan[], set: PolicySet, { fromMs, toMs }: Span): string[] {
  const budgets = limitingBudgets(set);
  const isInPolicies = (span: StepSpan) =>
    budgets.some(({ name, steps }) => name === span.policy && steps.some((step) => sameStep(step, span)));
  return spans
    .filter((span) => span.fromMs < toMs && span.untilMs > fromMs && isInPolicies(span))
    .map(({ policy, account, untilMs, ...span }) => {
      const time = `from ${isoInstant(span.fromMs)} to ${isoInstant(untilMs)}`;
      return `${policy} (account ${printable(account)}): ${stepText(span)} limits ${time}.`;
    });
}

/** A note for each limiting budget whose spending is unknown. */
export function unknownBudgetNotes(sets: readonly PolicySet[], budgets: readonly { policy: string }[]): string[] {
  const names = new Set(sets.flatMap(limitingBudgets).map(({ name }) => name));
  return [...names]
    .filter((name) => budgets.every(({ policy }) => policy !== name))
    .map((name) => `the spending of ${name} is unknown: the forecast assumes that none of its steps limits`);
}

/** When steps that don't limit yet are expected to begin. Null is an unknown instant, or one after the end of the month. */
export function budgetStepsJson(
  { policies }: PolicySet,
  { budgets, nowMs }: { budgets: readonly BudgetOutlook[]; nowMs: number },
) {
  return budgets.flatMap((outlook) => {
    const policy = asKind(
      policies.find(({ name }) => name === outlook.policy),
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
