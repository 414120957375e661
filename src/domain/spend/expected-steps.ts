/** When the steps of a budget are expected to be reached. Instants are milliseconds since the epoch. */
import type { BudgetState } from './state.ts';
import { type BudgetStep, type BudgetTerms, sameStep } from './terms.ts';

/** The part of a budget's state in an account that is shown. */
export type BudgetOutlook = Pick<
  BudgetState,
  'policy' | 'account' | 'month' | 'fromMs' | 'toMs' | 'knownUntilMs' | 'spent' | 'projected' | 'spans'
>;

/** A step that does not limit now, and when it is reached: null where that is not expected before the month ends. */
export interface ExpectedStep {
  account: string;
  step: BudgetStep;
  /** By the upper end of the projection, its middle, and its lower end. */
  atMs: { low: number | null; mid: number | null; high: number | null };
}

/**
 * The steps of a budget that are to come, as if what is left of the projection were spent evenly over the rest of the month. A step by what is
 * projected is reached at the next instant `decidedMs` if the projection is above it already.
 */
export function expectedSteps(
  { steps }: BudgetTerms,
  outlook: BudgetOutlook,
  { nowMs, decidedMs }: { nowMs: number; decidedMs: number },
): ExpectedStep[] {
  const { account, projected } = outlook;
  const isActive = (step: BudgetStep) =>
    outlook.spans.some((span) => sameStep(span, step) && span.fromMs <= nowMs && nowMs < span.untilMs);
  return steps
    .filter((step) => !isActive(step))
    .map((step) => {
      const reachedWith = (whole: number | undefined) => reachedAt(step, outlook, whole, { nowMs, decidedMs });
      const atMs = {
        low: reachedWith(projected?.high),
        mid: reachedWith(projected?.mid),
        high: reachedWith(projected?.low),
      };
      return { account, step, atMs };
    });
}

function reachedAt(
  { at, of }: BudgetStep,
  { month, spent, toMs, knownUntilMs }: BudgetOutlook,
  whole: number | undefined,
  { nowMs, decidedMs }: { nowMs: number; decidedMs: number },
): number | null {
  const amount = at * month.amount;
  if (whole === undefined || spent === null || whole < amount) return null;
  if (of === 'projected') return decidedMs < toMs ? decidedMs : null;
  const share = (amount - spent) / (whole - spent);
  return Math.max(nowMs, Math.round(knownUntilMs + Math.max(0, share) * (toMs - knownUntilMs)));
}
