import { DateTime } from 'luxon';
import type { AccountPlan, Prices } from '../compute/cost.ts';
import type { Span } from '../time/span.ts';
import { HOUR_MS } from '../time/units.ts';

/** The plans of an account with the instants from which they apply, oldest first. */
export type PlanTimes = readonly (readonly [fromMs: number, plan: string])[];

/** Usage of the last hours has not arrived yet; these hours are left out. */
const USAGE_DELAY_MS = 2 * HOUR_MS;

/** A billing month; its usage can be known up to `untilMs`. */
export interface BillingMonth extends Span {
  untilMs: number;
}

/** The start of the calendar month (UTC) that is `months` after the month of an instant, milliseconds since the epoch. */
export function monthStart(ms: number, months = 0): number {
  return DateTime.fromMillis(ms, { zone: 'utc' }).startOf('month').plus({ months }).toMillis();
}

/**
 * The billing month that begins in the calendar month (UTC) of an instant. It begins when a billing period starts in the calendar month. If
 * none starts, or only the plan changes, it begins on the first day.
 */
export function billingMonth(monthMs: number, plans: PlanTimes, nowMs: number): BillingMonth {
  const [fromMs, toMs] = [billingStart(monthStart(monthMs), plans), billingStart(monthStart(monthMs, 1), plans)];
  const arrivedMs = nowMs - USAGE_DELAY_MS;
  return { fromMs, toMs, untilMs: Math.max(fromMs, Math.min(toMs, arrivedMs - (arrivedMs % HOUR_MS))) };
}

function billingStart(firstMs: number, plans: PlanTimes): number {
  const nextMs = monthStart(firstMs, 1);
  const starts = plans.map(([fromMs]) => fromMs).filter((fromMs) => fromMs >= firstMs && fromMs < nextMs);
  // If this or an earlier period began on the first day of a month, starts within a month are changes of plan.
  const isCalendarMonth = starts.length === 0 || starts.includes(firstMs) || hasBegunOnFirstDay(plans, firstMs);
  return isCalendarMonth ? firstMs : Math.min(...starts);
}

/** True if a period before `firstMs` began on the first day of a month. */
function hasBegunOnFirstDay(plans: PlanTimes, firstMs: number): boolean {
  return plans.some(([fromMs]) => fromMs < firstMs && fromMs === monthStart(fromMs));
}

/** US dollars per CU-hour at an instant, by the plan at that time or, if it is not known, by `otherwise`; undefined for a plan without a price. */
export function priceAt(
  startMs: number,
  { plans, prices, otherwise }: { plans: PlanTimes; prices: Prices; otherwise: AccountPlan | undefined },
): number | undefined {
  const plan = plans.findLast(([fromMs]) => fromMs <= startMs)?.[1] ?? otherwise;
  return plan !== undefined && Object.hasOwn(prices, plan) ? prices[plan as AccountPlan] : undefined;
}
