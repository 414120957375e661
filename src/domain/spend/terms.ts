/** The terms of a budget: an amount per billing month and account, and steps at shares of it. */

import { type FieldGroup, timeoutOfLength } from '../compute/compute.ts';
import { formatSuspendTimeout } from '../compute/compute-units.ts';
import { formatUsd } from '../compute/cost.ts';
import type { Range } from '../estimate.ts';
import { HOUR_MS } from '../time/units.ts';

/** After a step has ended, its computes are released over this time, each at its own instant, to spare the control API. */
export const STEP_END_SPREAD_MS = 6 * HOUR_MS;

/** The basis of a step: the spending so far, or the projection of the month. */
export type StepBasis = 'projected' | 'spent';

/** The threshold of a step, unique in its budget. */
export interface StepThreshold {
  /** The share of the amount: 0.8 is 80 %. */
  at: number;
  of: StepBasis;
}

/** A step of a budget; `Disruption` is the type of a policy's disruption rules. */
export interface BudgetStep<Disruption = unknown> extends StepThreshold {
  notify: readonly string[];
  /** Bounds by group: CU, or seconds with "never" as infinity. Absent if the step limits nothing. */
  limits?: { readonly [G in FieldGroup]?: Range };
  /** When the step may lower the size of an awake compute; absent: never. */
  disruption?: Disruption;
}

export type BudgetUnit = 'cu_hours' | 'usd';

export interface BudgetTerms<Disruption = unknown> {
  month: { unit: BudgetUnit; amount: number };
  /** Ascending by {@link StepThreshold.at}. */
  steps: readonly BudgetStep<Disruption>[];
  /** True if limits also apply to default and protected branches. */
  includeProtected: boolean;
  /** The IANA zone of the policy file. */
  zone: string;
}

/** A time span in which a budget step limits an account's computes. Milliseconds since the epoch. */
export interface StepSpan extends StepThreshold {
  policy: string;
  account: string;
  fromMs: number;
  /** The end of the step, at the latest that of the billing month. Computes are released over the following hours. */
  untilMs: number;
}

/** True if both are the same step, independent of its position in the list. */
export function sameStep(a: StepThreshold, b: StepThreshold): boolean {
  return a.at === b.at && a.of === b.of;
}

/** A step as policies write it: `95% projected`. */
export function stepText({ at, of }: StepThreshold): string {
  return `${Math.round(at * 100)}% ${of}`;
}

/** What a step limits, for people: `size at most 1 CU, suspend_after at most 5m`; empty if nothing. */
export function limitsText({ limits = {} }: Pick<BudgetStep, 'limits'>): string {
  const { size, suspend_timeout: timeout } = limits;
  return [
    ...(size ? [`size ${rangeText(size, (cu) => `${cu} CU`)}`] : []),
    ...(timeout
      ? [`suspend_after ${rangeText(timeout, (length) => formatSuspendTimeout(timeoutOfLength(length)))}`]
      : []),
  ].join(', ');
}

function rangeText({ low, high }: Range, format: (value: number) => string): string {
  if (low === high) return format(low);
  const ends = [
    ...(low > 0 ? [`at least ${format(low)}`] : []),
    ...(Number.isFinite(high) ? [`at most ${format(high)}`] : []),
  ];
  return ends.join(' and ');
}

/** The monthly amount for people: `$2,000.00`, `2000 CUh`. */
export function amountText({ unit, amount }: BudgetTerms['month']): string {
  return unit === 'usd' ? formatUsd(amount) : `${amount} CUh`;
}
