import type { AccountPlan, Prices } from '../compute/cost.ts';
import { HOUR_MS } from '../time/units.ts';
import { monthStart } from './known.ts';

/** The plan by the instant from which it counts, oldest first: starts of billing months, and of parts of them. */
export type PlanTimes = readonly (readonly [fromMs: number, plan: string])[];

/** Usage of the last hours has not arrived yet: they are neither known nor unknown. */
const NOT_ARRIVED_MS = 2 * HOUR_MS;

/** A billing month, milliseconds since the epoch; `untilMs`: up to when its usage can be known. */
export interface BillingMonth {
  fromMs: number;
  toMs: number;
  untilMs: number;
}

/**
 * The billing month that begins in the calendar month (UTC) of an instant: when a period begins there that is no mere change of
 * plan, else on its first day.
 */
export function billingMonth(monthMs: number, plans: PlanTimes, nowMs: number): BillingMonth {
  const [fromMs, toMs] = [startIn(monthStart(monthMs), plans), startIn(monthStart(monthMs, 1), plans)];
  const arrivedMs = nowMs - NOT_ARRIVED_MS;
  return { fromMs, toMs, untilMs: Math.max(fromMs, Math.min(toMs, arrivedMs - (arrivedMs % HOUR_MS))) };
}

function startIn(firstMs: number, plans: PlanTimes): number {
  const nextMs = monthStart(firstMs, 1);
  const starts = plans.map(([fromMs]) => fromMs).filter((fromMs) => fromMs >= firstMs && fromMs < nextMs);
  // With a period that begins on the first, others of the month are changes of plan.
  return starts.length === 0 || starts.includes(firstMs) || beganBefore(firstMs, plans) ? firstMs : Math.min(...starts);
}

function beganBefore(firstMs: number, plans: PlanTimes): boolean {
  return plans.some(([fromMs]) => fromMs < firstMs && fromMs === monthStart(fromMs));
}

/** US dollars for a CU-hour at an instant: by the plan of then, else by `otherwise`; undefined for a plan without a price. */
export function priceAt(
  startMs: number,
  { plans, prices, otherwise }: { plans: PlanTimes; prices: Prices; otherwise: AccountPlan | undefined },
): number | undefined {
  const plan = plans.findLast(([fromMs]) => fromMs <= startMs)?.[1] ?? otherwise;
  return plan !== undefined && Object.hasOwn(prices, plan) ? prices[plan as AccountPlan] : undefined;
}
