/** The terms of a budget: an amount for a billing month of one account, and steps as it is used up. */
import type { FieldGroup } from '../compute/compute.ts';
import { formatUsd } from '../compute/cost.ts';

/** The basis of a step: the spending so far, or the projection of the month. */
export type StepBasis = 'projected' | 'spent';

/** The threshold of a step. No two steps of a budget have the same. */
export interface StepThreshold {
  /** Share of the amount: 0.8 is 80 %. */
  at: number;
  of: StepBasis;
}

/** A step of a budget; `Disruption` is how policies say when a change may disturb. */
export interface BudgetStep<Disruption = unknown> extends StepThreshold {
  /** Names of the receivers of a notification. */
  notify: readonly string[];
  /** Bounds as plain numbers: CU, or seconds with "never" as infinity. Absent where the step limits nothing. */
  limits?: { readonly [G in FieldGroup]?: { low: number; high: number } };
  /** When it may change the size of an awake compute; never, if absent. */
  disruption?: Disruption;
}

export type BudgetUnit = 'cu_hours' | 'usd';

export interface BudgetTerms<Disruption = unknown> {
  month: { unit: BudgetUnit; amount: number };
  /** Ascending by {@link StepThreshold.at}. */
  steps: readonly BudgetStep<Disruption>[];
  /** True if limits also apply to default and protected branches. */
  includeProtected: boolean;
  /** IANA zone of the file. */
  zone: string;
}

/** A stretch of time in which a step of a budget limits the computes of an account. Milliseconds since the epoch. */
export interface StepSpan extends StepThreshold {
  /** Name of the budget's policy. */
  policy: string;
  account: string;
  fromMs: number;
  /** The end of the billing month, or when the step ended before that; computes follow over the next hours. */
  untilMs: number;
}

/** True if both are the same step, also where other steps were added before it. */
export function sameStep(a: StepThreshold, b: StepThreshold): boolean {
  return a.at === b.at && a.of === b.of;
}

/** A step as policies write it: `95% projected`. */
export function stepText({ at, of }: StepThreshold): string {
  return `${Math.round(at * 100)}% ${of}`;
}

/** The monthly amount for people: `$2,000.00`, `2000 CUh`. */
export function amountText({ unit, amount }: BudgetTerms['month']): string {
  return unit === 'usd' ? formatUsd(amount) : `${amount} CUh`;
}
