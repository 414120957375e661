/** Decides which steps of a budget are reached. Instants are milliseconds since the epoch; amounts are in the budget's unit. */
import { DateTime } from 'luxon';
import type { Span } from '../time/span.ts';
import { DAY_MS, HOUR_MS } from '../time/units.ts';
import type { BillingMonth } from '../usage/month.ts';
import { type KnownDays, type Projection, projectMonth, shownProjection } from '../usage/projection.ts';
import {
  amountText,
  type BudgetStep,
  type BudgetTerms,
  STEP_END_SPREAD_MS,
  type StepSpan,
  type StepThreshold,
  sameStep,
} from './terms.ts';

/** The stored state of a budget in one account, for one billing month. */
export interface BudgetState extends Span {
  policy: string;
  account: string;
  month: BudgetTerms['month'];
  /** The spending of known hours; null if a price is unknown. */
  spent: number | null;
  /** The projection of the month as it is shown; null while it is too uncertain for that. Steps are decided by an uncertain projection, too. */
  projected: Projection | null;
  unknownHours: number;
  /** The end of the last hour with known usage. */
  knownUntilMs: number;
  /** When projected steps were last decided; 0 if never. */
  decidedAtMs: number;
  /** Steps about which receivers were notified this month. */
  notified: readonly StepThreshold[];
  /** Steps that a person ended this month. */
  released: readonly StepThreshold[];
  /** The spans in which steps limit computes: of this month and the weeks before. */
  spans: readonly StepSpan[];
}

/** The facts about a budget's month in one account. */
export interface BudgetFacts {
  nowMs: number;
  month: BillingMonth;
  /** The spending so far; undefined if a price is unknown. */
  spent: number | undefined;
  unknownHours: number;
  /** The expected spending of the unknown hours; undefined if a price is unknown. */
  unknown: number | undefined;
  knownUntilMs: number;
  /** Complete days, including the weeks before the month. */
  days: KnownDays;
}

/** `reached`: the receivers of the step are notified. `begun`, `ended`: the step begins or stops limiting computes. */
export interface StepEvent {
  kind: 'reached' | 'begun' | 'ended';
  step: BudgetStep;
}

/** Projected steps are decided from the eighth day of the month on, at this hour. */
const FIRST_DECISION_MS = 7 * DAY_MS;
const DECISION_HOUR = 6;
/** With older data, projected steps are not decided. */
const MAX_DATA_AGE_MS = 12 * HOUR_MS;
/** A step ends when the upper end of the projection is below its threshold by more than this share of the amount. */
const HYSTERESIS = 0.05;
/** Ended spans are kept for this long, since projections leave out the days on which a step limited computes. */
const SPAN_RETENTION_MS = 40 * DAY_MS;

/** Updates the state of a budget to the present facts and returns the events of its steps. Missing data neither begin nor end a step. */
export function advanceBudget(
  stored: BudgetState | undefined,
  { policy, account, terms }: { policy: string; account: string; terms: BudgetTerms },
  facts: BudgetFacts,
): { state: BudgetState; events: StepEvent[] } {
  const { nowMs, month, spent = null, unknownHours, knownUntilMs } = facts;
  // The state of a month in the future was written by a wrong clock.
  const before = stored && stored.fromMs <= nowMs ? stored : undefined;
  const carried = carriedOver(before, terms, facts);
  const hasNewAmount = before !== undefined && !sameAmount(before.month, terms.month);
  const projections = projectionsOf(facts, carried.spans);
  const shown = shownProjection(projections?.expected);
  const isDecided = projections !== undefined && isDecisionDue(terms.zone, carried.decidedAtMs, facts, hasNewAmount);
  const state: BudgetState = {
    policy,
    account,
    month: terms.month,
    fromMs: month.fromMs,
    toMs: month.toMs,
    spent,
    projected: typeof shown === 'object' ? shown : null,
    unknownHours,
    knownUntilMs,
    ...carried,
    ...(isDecided && { decidedAtMs: nowMs }),
  };
  const events = stepsEndedByMonth(before, terms, facts);
  for (const step of terms.steps) {
    const outcome = stepOutcome(step, terms.month.amount, facts, isDecided ? projections : undefined);
    // After a change of the amount, steps that are not reached end.
    const limits = hasNewAmount && outcome.limits === 'not_yet' ? 'end' : outcome.limits;
    events.push(...advanceStep(state, step, { ...outcome, limits }, nowMs));
  }
  return { state, events };
}

/** Applies the outcome of a step to the state in place, and returns the events. */
function advanceStep(
  state: BudgetState,
  step: BudgetStep,
  { limits, notifies }: StepOutcome,
  nowMs: number,
): StepEvent[] {
  const { policy, account, toMs: untilMs } = state;
  const isIn = (steps: readonly StepThreshold[]) => steps.some((one) => sameStep(one, step));
  const active = state.spans.find((span) => sameStep(span, step) && span.untilMs > nowMs);
  const events: StepEvent[] = [];
  if (notifies && step.notify.length > 0 && !isIn(state.notified)) {
    state.notified = [...state.notified, thresholdOf(step)];
    events.push({ kind: 'reached', step });
  }
  if (!active && limits === 'begin' && step.limits && !isIn(state.released)) {
    state.spans = [...state.spans, { policy, account, ...thresholdOf(step), fromMs: nowMs, untilMs }];
    events.push({ kind: 'begun', step });
  }
  if (active && limits === 'end') {
    state.spans = state.spans.map((span) => (span === active ? { ...span, untilMs: nowMs } : span));
    events.push({ kind: 'ended', step });
  }
  return events;
}

/** Ends the steps that limit now, on a person's request; they don't begin again this month. */
export function releaseBudget(state: BudgetState, nowMs: number): BudgetState {
  const active = state.spans.filter(({ untilMs }) => untilMs > nowMs);
  return {
    ...state,
    released: [...state.released, ...active.map(thresholdOf)],
    spans: state.spans.map((span) => (active.includes(span) ? { ...span, untilMs: nowMs } : span)),
  };
}

/** The number of the highest step that is reached, counted from 1; 0 if there is none. */
export function stepReached(state: BudgetState, { steps }: BudgetTerms, nowMs: number): number {
  const reached = [...state.notified, ...activeSpans(state, nowMs)];
  return 1 + steps.findLastIndex((step) => reached.some((threshold) => sameStep(threshold, step)));
}

function activeSpans({ spans }: Pick<BudgetState, 'spans'>, nowMs: number): StepSpan[] {
  return spans.filter(({ fromMs, untilMs }) => fromMs <= nowMs && nowMs < untilMs);
}

/** A budget for people: `60 % of 2000 CUh spent, 95 % to 120 % projected`. */
export function describeBudget({ month, spent, projected }: BudgetState): string {
  const percent = (value: number) => `${Math.round((100 * value) / month.amount)} %`;
  const amount = amountText(month);
  const used = spent === null ? `what is spent of ${amount} is unknown` : `${percent(spent)} of ${amount} spent`;
  return projected ? `${used}, ${percent(projected.low)} to ${percent(projected.high)} projected` : used;
}

function thresholdOf({ at, of }: StepThreshold): StepThreshold {
  return { at, of };
}

function sameAmount(a: BudgetTerms['month'], b: BudgetTerms['month']): boolean {
  return a.unit === b.unit && a.amount === b.amount;
}

function isNewMonth(before: BudgetState, { month }: BudgetFacts): boolean {
  return month.fromMs >= before.toMs;
}

/** The part of the earlier state that still applies: a new month starts anew, and steps that the policy no longer has end. */
function carriedOver(
  before: BudgetState | undefined,
  { steps }: BudgetTerms,
  facts: BudgetFacts,
): Pick<BudgetState, 'decidedAtMs' | 'notified' | 'released' | 'spans'> {
  const { nowMs, month } = facts;
  if (!before) return { decidedAtMs: 0, notified: [], released: [], spans: [] };
  const isNew = isNewMonth(before, facts);
  const untilMs = (span: StepSpan) => {
    if (span.untilMs <= nowMs || isNew) return span.untilMs;
    return steps.some((step) => step.limits && sameStep(step, span)) ? month.toMs : nowMs;
  };
  return {
    decidedAtMs: before.decidedAtMs > nowMs ? 0 : before.decidedAtMs,
    notified: isNew ? [] : before.notified,
    released: isNew ? [] : before.released,
    spans: before.spans
      .filter((span) => span.untilMs > nowMs - SPAN_RETENTION_MS)
      .map((span) => ({ ...span, untilMs: untilMs(span) })),
  };
}

/** The end events of steps that limited until the end of the previous month. */
function stepsEndedByMonth(before: BudgetState | undefined, { steps }: BudgetTerms, facts: BudgetFacts): StepEvent[] {
  if (!before || !isNewMonth(before, facts)) return [];
  const endedSpans = before.spans.filter(({ untilMs }) => untilMs >= before.toMs);
  return steps.flatMap((step) => (endedSpans.some((span) => sameStep(span, step)) ? [{ kind: 'ended', step }] : []));
}

/** The last decision instant up to `nowMs` (direction −1), or the first after it (1). */
function decisionInstantMs(zone: string, nowMs: number, direction: -1 | 1): number {
  const now = DateTime.fromMillis(nowMs, { zone });
  const today = now.startOf('day').set({ hour: DECISION_HOUR });
  const isPast = today <= now;
  return today.plus({ days: Number(direction > 0 && isPast) - Number(direction < 0 && !isPast) }).toMillis();
}

/** The next instant at which projected steps are decided. */
export function nextDecisionMs({ zone }: Pick<BudgetTerms, 'zone'>, monthFromMs: number, nowMs: number): number {
  return decisionInstantMs(zone, Math.max(nowMs, monthFromMs + FIRST_DECISION_MS - 1), 1);
}

interface Projections {
  /** The projection with the usage that is expected in unknown hours. */
  expected: Projection;
  /** The projection without usage in unknown hours, so that missing data begin no step. */
  minimal: Projection;
}

/** Projects the month. Days on which a step limited computes are left out: their usage is not typical. */
function projectionsOf(
  { days, month, spent, unknown }: BudgetFacts,
  spans: readonly StepSpan[],
): Projections | undefined {
  if (spent === undefined || unknown === undefined) return undefined;
  const isUnlimited = (dayMs: number) =>
    spans.every(({ fromMs, untilMs }) => dayMs + DAY_MS <= fromMs || untilMs + STEP_END_SPREAD_MS <= dayMs);
  const unlimitedDays = new Map([...days].filter(([dayMs]) => isUnlimited(dayMs)));
  const expected = projectMonth(unlimitedDays, { month, spent, unknown });
  const minimal = unknown === 0 ? expected : projectMonth(unlimitedDays, { month, spent, unknown: 0 });
  return expected && minimal && { expected, minimal };
}

/** True once a day, as soon as there are recent data, and after a change of the amount. */
function isDecisionDue(zone: string, decidedAtMs: number, facts: BudgetFacts, hasNewAmount: boolean): boolean {
  const { nowMs, month, knownUntilMs } = facts;
  if (nowMs - knownUntilMs > MAX_DATA_AGE_MS) return false;
  const lastMs = decisionInstantMs(zone, nowMs, -1);
  if (lastMs < month.fromMs + FIRST_DECISION_MS) return false;
  return decidedAtMs < lastMs || hasNewAmount;
}

interface StepOutcome {
  /** `not_yet` and `unknown` begin no step, and a step that limits continues; after a change of the amount, `not_yet` ends it. */
  limits: 'begin' | 'end' | 'not_yet' | 'unknown';
  notifies: boolean;
}

function stepOutcome(
  { at, of }: BudgetStep,
  amount: number,
  { spent, unknownHours }: BudgetFacts,
  projections: Projections | undefined,
): StepOutcome {
  if (of === 'spent') {
    if (spent === undefined) return { limits: 'unknown', notifies: false };
    const isReached = spent >= at * amount;
    return { limits: isReached ? 'begin' : 'not_yet', notifies: isReached };
  }
  if (!projections) return { limits: 'unknown', notifies: false };
  const { expected, minimal } = projections;
  const notifies = minimal.mid > at * amount;
  if (minimal.low > at * amount) return { limits: 'begin', notifies };
  const isOver = unknownHours === 0 && expected.high < (at - HYSTERESIS) * amount;
  return { limits: isOver ? 'end' : 'not_yet', notifies };
}

/* Forecasts when the steps of a budget are reached. */

/** The part of a budget's state that is shown to people. */
export type BudgetOutlook = Omit<BudgetState, 'unknownHours' | 'decidedAtMs' | 'notified' | 'released'>;

/** A step that does not limit now. */
interface ExpectedStep {
  account: string;
  step: BudgetStep;
  /** When it is reached by the upper end, the middle and the lower end of the projection; null if not before the month ends. */
  atMs: { low: number | null; mid: number | null; high: number | null };
}

/**
 * The coming steps of a budget, assuming that the remaining projected spending is spread evenly over the rest of the month. A projected
 * step is reached at the next decision, `decisionMs`, if the projection already exceeds it.
 */
export function expectedSteps(
  { steps }: BudgetTerms,
  outlook: BudgetOutlook,
  instants: { nowMs: number; decisionMs: number },
): ExpectedStep[] {
  const { account, projected } = outlook;
  const active = activeSpans(outlook, instants.nowMs);
  return steps
    .filter((step) => !active.some((span) => sameStep(span, step)))
    .map((step) => {
      const reachedMs = (total: number | undefined) => expectedReachMs(step, outlook, total, instants);
      const [low, mid, high] = [reachedMs(projected?.high), reachedMs(projected?.mid), reachedMs(projected?.low)];
      return { account, step, atMs: { low, mid, high } };
    });
}

/** When a step is reached if the month's total will be this; null if not before the month ends. */
function expectedReachMs(
  { at, of }: BudgetStep,
  { month, spent, toMs, knownUntilMs }: BudgetOutlook,
  total: number | undefined,
  { nowMs, decisionMs }: { nowMs: number; decisionMs: number },
): number | null {
  const amount = at * month.amount;
  if (total === undefined || spent === null || total < amount) return null;
  if (of === 'projected') return decisionMs < toMs ? decisionMs : null;
  const share = (amount - spent) / (total - spent);
  return Math.max(nowMs, Math.round(knownUntilMs + Math.max(0, share) * (toMs - knownUntilMs)));
}
