import { printable } from '../../common/safe-text.ts';
import { amountText, stepText } from '../../domain/spend/terms.ts';
import type { Answer } from '../operator/access.ts';

type Budget = Answer<'status'>['budgets'][number];

/** A line for each budget: spent and projected amounts, and the active steps. */
export function budgetLines(budgets: readonly Budget[], at: string): string[] {
  return budgets.map(({ budget, account, month, spent, projected, limiting }) => {
    const percent = (value: number) => `${Math.round((100 * value) / month.amount)} %`;
    const used =
      spent === null ? 'spent unknown: set plan: in ebb.yaml' : `${percent(spent)} of ${amountText(month)} spent`;
    const whole = projected
      ? `, ${percent(projected.low)} to ${percent(projected.high)} by the end of the month`
      : ', the whole month unknown yet';
    const steps = limiting.map((step) => stepText(step) + (step.until <= at ? ' (ended)' : ''));
    const limits = steps.length > 0 ? `; limits: ${steps.join(', ')}` : '';
    return `budget ${printable(budget)} (${printable(account)}): ${used}${whole}${limits}`;
  });
}
