import { type BudgetState, describeBudget } from '../../domain/budget/state.ts';
import { type StepThreshold, sameStep, stepText } from '../../domain/budget/terms.ts';
import type { Notification } from '../../domain/notifications/notification.ts';
import type { PolicySet } from '../../domain/policy/policy.ts';
import { isoInstant } from '../../domain/time/instants.ts';

/** Steps of budgets that are reached this month, and that limit: each for the receivers that it names, besides those of the owner. */
export function budgetStepNotifications(
  states: readonly BudgetState[],
  { policies }: Pick<PolicySet, 'policies'>,
  nowMs: number,
): Notification[] {
  return states.flatMap((state) => {
    const { policy, account, fromMs, notified, spans } = state;
    const budget = policies.find(({ name }) => name === policy);
    if (budget?.kind !== 'budget' || budget.mode === 'observe') return [];
    const limiting = spans.filter((span) => span.fromMs >= fromMs && span.untilMs > nowMs);
    const notificationOf = (threshold: StepThreshold, what: 'is reached' | 'limits'): Notification => ({
      id: `budget_step:${[policy, account, isoInstant(fromMs).slice(0, 10), stepText(threshold), what].join(':')}`,
      ...{ kind: 'budget_step', atMs: nowMs, policy, ...(budget.owner !== undefined && { owner: budget.owner }) },
      text: `budget ${policy} of the account ${account}: step ${stepText(threshold)} ${what}; ${describeBudget(state)}`,
      receivers: [...(budget.notify ?? []), ...(budget.steps.find((step) => sameStep(step, threshold))?.notify ?? [])],
      ...(what === 'limits' && { command: `ebb release --budget ${policy}` }),
    });
    return [
      ...notified.map((threshold) => notificationOf(threshold, 'is reached')),
      ...limiting.map((threshold) => notificationOf(threshold, 'limits')),
    ];
  });
}
