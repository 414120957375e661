import type { AccountPlan, Prices } from '../compute/cost.ts';
import { HOUR_MS } from '../time/units.ts';
import { monthStart } from './known.ts';

/** The plans of an account with the instants from which they apply, oldest first. */
export type PlanTimes = readonly (readonly [fromMs: number, plan: string])[];

/** Usage of the last hours has not arrived yet; these hours are left out. */
const USAGE_DELAY_MS = 2 * HOUR_MS;

/** A billing month, milliseconds since the epoch; its usage can be known up to `untilMs`. */
export interface BillingMonth {
  fromMs: number;
  toMs: number;
  untilMs: number;
}

/**
 * The billing month that begins in the calendar month (UTC) of an instant. It begins with a billing period that starts there and is not
 * just a change of plan, otherwise on the first day.
 */
export function billingMonth(monthMs: number, plans: PlanTimes, nowMs: number): BillingMonth {
  const [fromMs, toMs] = [billingStart(monthStart(monthMs), plans), billingStart(monthStart(monthMs, 1), plans)];
  const arrivedMs = nowMs - USAGE_DELAY_MS;
  return { fromMs, toMs, untilMs: Math.max(fromMs, Math.min(toMs, arrivedMs - (arrivedMs % HOUR_MS))) };
}

function billingStart(firstMs: number, plans: PlanTimes): number {
  const nextMs = monthStart(firstMs, 1);
  const starts = plans.map(([fromMs]) => fromMs).filter((fromMs) => fromMs >= firstMs && fromMs < nextMs);
  // If a period begins on the first day, later ones in the month are changes of plan.
  return starts.length === 0 || starts.includes(firstMs) || beganBefore(firstMs, plans) ? firstMs : Math.min(...starts);
}

function beganBefore(firstMs: number, plans: PlanTimes): boolean {
  return plans.some(([fromMs]) => fromMs < firstMs && fromMs === monthStart(fromMs));
}

/** US dollars per CU-hour at an instant, by the plan at that time or else `otherwise`; undefined for a plan without a price. */
export function priceAt(
  startMs: number,
  { plans, prices, otherwise }: { plans: PlanTimes; prices: Prices; otherwise: AccountPlan | undefined },
): number | undefined {
  const plan = plans.findLast(([fromMs]) => fromMs <= startMs)?.[1] ?? otherwise;
  return plan !== undefined && Object.hasOwn(prices, plan) ? prices[plan as AccountPlan] : undefined;
}
