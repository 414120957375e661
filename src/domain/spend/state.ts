/** The steps of a budget that are reached. Instants are milliseconds since the epoch; amounts are in the unit of the budget. */
import { DateTime } from 'luxon';
import { DAY_MS, HOUR_MS } from '../time/units.ts';
import type { BillingMonth } from '../usage/month.ts';
import { type KnownDays, type Projected, projectMonth, shownProjection } from '../usage/projection.ts';
import { amountText, type BudgetStep, type BudgetTerms, type StepSpan, type StepThreshold, sameStep } from './terms.ts';

/** The stored state of a budget in one account. */
export interface BudgetState {
  policy: string;
  account: string;
  month: BudgetTerms['month'];
  fromMs: number;
  toMs: number;
  /** The sum of known hours; null if its price is not known. */
  spent: number | null;
  /** The projection of the month; null while it is too uncertain to be shown. Steps are decided by the interval however wide it is. */
  projected: Projected | null;
  unknownHours: number;
  /** The end of the last hour of which anything is known. */
  knownUntilMs: number;
  /** The last decision on projected steps; 0 if there was none. */
  decidedAtMs: number;
  /** Steps that were notified in this month. */
  notified: readonly StepThreshold[];
  /** Steps that a person has ended in this month. */
  released: readonly StepThreshold[];
  /** The spans in which steps limited: of this month and the weeks before it. */
  spans: readonly StepSpan[];
}

/** The facts about a budget's month in one account. */
export interface BudgetFacts {
  nowMs: number;
  month: BillingMonth;
  /** Undefined if the price of some is not known. */
  spent: number | undefined;
  unknownHours: number;
  knownUntilMs: number;
  /** Whole days, also of the weeks before the month. */
  days: KnownDays;
}

/** `reached`: who the step names is to be notified; `begun`, `ended`: it limits from now on, or no longer. */
export interface StepEvent {
  kind: 'reached' | 'begun' | 'ended';
  step: BudgetStep;
}

/** Projections are decided from the eighth day of the month on, at this hour. */
const FIRST_DECISION_MS = 7 * DAY_MS;
const DECISION_HOUR = 6;
/** Without newer data nothing is decided from projections. */
const FRESH_MS = 12 * HOUR_MS;
/** A step ends if the projection is this far below its share. */
const HYSTERESIS = 0.05;
/** Retention of spans: their days don't count for projections. */
const SPANS_KEPT_MS = 40 * DAY_MS;
/** Computes follow the end of a step over this time; see decide/budget-steps.ts. */
const ENDING_MS = 6 * HOUR_MS;

/** Advances the state of a budget to the present facts, and returns the events of its steps. Missing data begin no step and end none. */
export function advanceBudget(
  stored: BudgetState | undefined,
  { policy, account, terms }: { policy: string; account: string; terms: BudgetTerms },
  facts: BudgetFacts,
): { state: BudgetState; events: StepEvent[] } {
  const { nowMs, month, spent = null, unknownHours, knownUntilMs } = facts;
  // A month that has not begun was decided by a clock that was ahead.
  const before = stored && stored.fromMs <= nowMs ? stored : undefined;
  const kept = keptUntilNow(before, terms, facts);
  const isOther = before !== undefined && !sameMonth(before.month, terms.month);
  const projections = projectionsOf(facts, kept.spans);
  const shown = shownProjection(projections?.whole);
  const isDecided = projections !== undefined && isDecisionDue(terms.zone, kept.decidedAtMs, facts, isOther);
  const state: BudgetState = {
    ...{ policy, account, month: terms.month, fromMs: month.fromMs, toMs: month.toMs },
    ...{ spent, projected: typeof shown === 'object' ? shown : null, unknownHours, knownUntilMs },
    ...{ ...kept, ...(isDecided && { decidedAtMs: nowMs }) },
  };
  const events = endedByTime(before, terms, facts);
  const known = { amount: terms.month.amount, facts, projections: isDecided ? projections : undefined };
  for (const step of terms.steps) {
    const reach = reachOf(step, known);
    // With another amount a step that is not reached ends.
    const limits = isOther && reach.limits === 'not_yet' ? 'end' : reach.limits;
    events.push(...advanceStep(state, step, { ...reach, limits }, nowMs));
  }
  return { state, events };
}

/** Changes the state in place; it is not shared yet. */
function advanceStep(state: BudgetState, step: BudgetStep, { limits, notifies }: Reach, nowMs: number): StepEvent[] {
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

/** A state in which a person has ended the steps that limit now: they don't begin again in this month. */
export function releaseBudget(state: BudgetState, nowMs: number): BudgetState {
  const active = state.spans.filter(({ untilMs }) => untilMs > nowMs);
  return {
    ...state,
    released: [...state.released, ...active.map(thresholdOf)],
    spans: state.spans.map((span) => (active.includes(span) ? { ...span, untilMs: nowMs } : span)),
  };
}

/** The highest step of a budget that is reached, as its place from 1 on; 0 if none is. */
export function stepReached({ notified, spans }: BudgetState, { steps }: BudgetTerms, nowMs: number): number {
  const active = spans.filter(({ fromMs, untilMs }) => fromMs <= nowMs && nowMs < untilMs);
  return 1 + steps.findLastIndex((step) => [...notified, ...active].some((one) => sameStep(one, step)));
}

/** `60 % of 2000 CUh spent, 95 % to 120 % projected`. */
export function describeBudget({ month, spent, projected }: BudgetState): string {
  const percent = (value: number) => `${Math.round((100 * value) / month.amount)} %`;
  const amount = amountText(month);
  const used = spent === null ? `what is spent of ${amount} is unknown` : `${percent(spent)} of ${amount} spent`;
  return projected ? `${used}, ${percent(projected.low)} to ${percent(projected.high)} projected` : used;
}

function thresholdOf({ at, of }: StepThreshold): StepThreshold {
  return { at, of };
}

function sameMonth(a: BudgetTerms['month'], b: BudgetTerms['month']): boolean {
  return a.unit === b.unit && a.amount === b.amount;
}

function isNewMonth(before: BudgetState, { month }: BudgetFacts): boolean {
  return month.fromMs >= before.toMs;
}

/** The part of the earlier state that still counts: a new month begins with nothing, and steps that the policy no longer has end. */
function keptUntilNow(
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
      .filter((span) => span.untilMs > nowMs - SPANS_KEPT_MS)
      .map((span) => ({ ...span, untilMs: untilMs(span) })),
  };
}

/** Steps that limited to the end of the month before. */
function endedByTime(before: BudgetState | undefined, { steps }: BudgetTerms, facts: BudgetFacts): StepEvent[] {
  if (!before || !isNewMonth(before, facts)) return [];
  const lasted = before.spans.filter(({ untilMs }) => untilMs >= before.toMs);
  return steps.flatMap((step) => (lasted.some((span) => sameStep(span, step)) ? [{ kind: 'ended', step }] : []));
}

/** The last instant of decisions until `nowMs`, or the first after it. */
function decisionAt(zone: string, nowMs: number, direction: -1 | 1): number {
  const now = DateTime.fromMillis(nowMs, { zone });
  const today = now.startOf('day').set({ hour: DECISION_HOUR });
  const isPast = today <= now;
  return today.plus({ days: Number(direction > 0 && isPast) - Number(direction < 0 && !isPast) }).toMillis();
}

/** When projected steps are decided next. */
export function nextDecisionMs({ zone }: Pick<BudgetTerms, 'zone'>, monthFromMs: number, nowMs: number): number {
  return decisionAt(zone, Math.max(nowMs, monthFromMs + FIRST_DECISION_MS - 1), 1);
}

interface Projections {
  /** With unknown hours as others are on average. */
  whole: Projected;
  /** Counts unknown hours as zero: missing data begin nothing. */
  least: Projected;
}

/** Days in which a step limited don't count: they say nothing about the usage without it. */
function projectionsOf(
  { days, month, spent, unknownHours }: BudgetFacts,
  spans: readonly StepSpan[],
): Projections | undefined {
  if (spent === undefined) return undefined;
  const isFree = (dayMs: number) =>
    spans.every(({ fromMs, untilMs }) => dayMs + DAY_MS <= fromMs || untilMs + ENDING_MS <= dayMs);
  const free = new Map([...days].filter(([dayMs]) => isFree(dayMs)));
  const whole = projectMonth(free, { month, spent, unknownHours });
  const least = unknownHours === 0 ? whole : projectMonth(free, { month, spent, unknownHours: 0 });
  return whole && least && { whole, least };
}

/** Once a day, or as soon as there are data after that; and when the amount is another. */
function isDecisionDue(zone: string, decidedAtMs: number, facts: BudgetFacts, isOther: boolean): boolean {
  const { nowMs, month, knownUntilMs } = facts;
  if (nowMs - knownUntilMs > FRESH_MS) return false;
  const lastMs = decisionAt(zone, nowMs, -1);
  if (lastMs < month.fromMs + FIRST_DECISION_MS) return false;
  return decidedAtMs < lastMs || isOther;
}

interface Reach {
  /** `not_yet`: it does not begin, and does not end either; `unknown`: nor may it end because the amount is another. */
  limits: 'begin' | 'end' | 'not_yet' | 'unknown';
  notifies: boolean;
}

function reachOf(
  { at, of }: BudgetStep,
  { amount, facts, projections }: { amount: number; facts: BudgetFacts; projections: Projections | undefined },
): Reach {
  const { spent, unknownHours } = facts;
  if (of === 'spent') {
    if (spent === undefined) return { limits: 'unknown', notifies: false };
    const isReached = spent >= at * amount;
    return { limits: isReached ? 'begin' : 'not_yet', notifies: isReached };
  }
  if (!projections) return { limits: 'unknown', notifies: false };
  const { whole, least } = projections;
  const notifies = least.mid > at * amount;
  if (least.low > at * amount) return { limits: 'begin', notifies };
  const isOver = unknownHours === 0 && whole.high < (at - HYSTERESIS) * amount;
  return { limits: isOver ? 'end' : 'not_yet', notifies };
}

/* When the steps of a budget are expected to be reached. Instants are milliseconds since the epoch. */

/** The part of a budget's state in an account that is shown. */
export type BudgetOutlook = Pick<
  BudgetState,
  'policy' | 'account' | 'month' | 'fromMs' | 'toMs' | 'knownUntilMs' | 'spent' | 'projected' | 'spans'
>;

/** A step that does not limit now, and when it is reached: null where that is not expected before the month ends. */
interface ExpectedStep {
  account: string;
  step: BudgetStep;
  /** By the upper end of the projection, its middle, and its lower end. */
  atMs: { low: number | null; mid: number | null; high: number | null };
}

/**
 * The coming steps of a budget, with the rest of the projection spread evenly over the rest of the month. A step by projection is reached
 * at the next instant `decidedMs` if the projection is above it already.
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
