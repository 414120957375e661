/** The leader decides the steps of budgets from stored usage, stores them for all daemons, and reports events. */

import type { ComputeIdentity } from '../../domain/compute/compute.ts';
import { groupBy } from '../../domain/grouping.ts';
import type { CompiledPolicies } from '../../domain/policy/compiled-policies.ts';
import type { BudgetPolicy } from '../../domain/policy/kinds/budget.ts';
import { asKind, policiesOfKind } from '../../domain/policy/kinds/kinds.ts';
import { AT_ANY_AGE, compileProjectSelector, type ProjectNames } from '../../domain/policy/select.ts';
import { selectsByBranch } from '../../domain/policy/selector.ts';
import {
  advanceBudget,
  type BudgetFacts,
  type BudgetState,
  describeBudget,
  releaseBudget,
  type StepEvent,
  stepReached,
} from '../../domain/spend/state.ts';
import { limitsText, stepText } from '../../domain/spend/terms.ts';
import { DAY_MS } from '../../domain/time/units.ts';
import { type BillLine, billOf, dailyLines, expectedInUnknown } from '../../domain/usage/bill.ts';
import { billingMonth } from '../../domain/usage/month.ts';
import { PAST_DAYS } from '../../domain/usage/projection.ts';
import { seriesOf } from '../../domain/usage/stored.ts';
import { type UsageUnit, unitName } from '../../domain/usage/usage.ts';
import type { Clock } from '../../ports/clock.ts';
import type { CostRules } from '../../ports/rules.ts';
import type { Telemetry } from '../../ports/telemetry.ts';
import { type BudgetRelease, openBudgets, readReleases } from './budget-store.ts';
import { firstBucketMs, lastKnownMs, pricesOf } from './month-costs.ts';
import {
  computesOf,
  type Identities,
  listedProjects,
  namesOf,
  organizationsNow,
  type SpendersDeps,
  withPast,
} from './spenders.ts';
import { type Organization, type UsageReader, usageAccount } from './usage-account.ts';

export interface BudgetRoundsDeps extends SpendersDeps {
  clock: Clock;
  telemetry: Telemetry;
  mode: 'enforce' | 'observe';
  /** Not ok if the group has other policies, or the clock is wrong. */
  mayWrite(): Promise<{ ok: boolean }>;
}

export interface BudgetRounds {
  /** Decides the steps if there is new usage, or policies or releases have changed. */
  decide(isNewUsage: boolean, identities: Identities): Promise<void>;
  /** Drops the states and their metrics, since another daemon leads now. */
  forget(): void;
}

export function createBudgetRounds(deps: BudgetRoundsDeps): BudgetRounds {
  const { store, rules, telemetry, clock } = deps;
  let decided: readonly BudgetState[] | undefined;
  /** The policies and releases of the last decision. */
  let lastInput: string | undefined;

  return {
    async decide(isNewUsage, identities) {
      const { policies, costs } = rules.current;
      const hasBudgets = policiesOfKind(policies.set.policies, 'budget').length > 0;
      if (!hasBudgets && decided?.length === 0) return;
      const releases = (await readReleases(store)) ?? [];
      const input = JSON.stringify([policies.set.hash, releases]);
      if (!isNewUsage && input === lastInput) return;
      lastInput = undefined;
      const stored = await openBudgets(store);
      // Checked after the document was opened: if a newer leader decides from then on, the replacement fails.
      if (deps.mode === 'enforce' && !(await deps.mayWrite()).ok) return;
      // The states in memory outlive the loss of a store.
      const before = stored.value ?? rules.budgets?.states ?? [];
      const { states, events } = await advanceBudgets({
        policies,
        costs,
        before,
        releases,
        nowMs: clock.now(),
        projects: [...identities.projects, ...listedProjects(deps).map(namesOf)],
        computes: withPast(computesOf(deps), identities.computes),
        organizations: organizationsNow(deps).map((one) => ({ ...one, stored: usageAccount(store, one) })),
      });
      if (!(await stored.replace(states))) return;
      decided = states;
      rules.budgets = { ...rules.budgets, states };
      lastInput = input;
      for (const event of events) logStep(telemetry, event);
      exportBudgets(deps, states);
    },
    forget() {
      if (decided === undefined) return;
      clearBudgets(telemetry);
      decided = undefined;
      lastInput = undefined;
    },
  };
}

function clearBudgets({ metrics }: Telemetry): void {
  metrics.clear('ebb_budget_spent_ratio');
  metrics.clear('ebb_budget_projected_ratio');
  metrics.clear('ebb_budget_step');
}

function exportBudgets({ telemetry, rules, clock }: BudgetRoundsDeps, states: readonly BudgetState[]): void {
  const { metrics } = telemetry;
  clearBudgets(telemetry);
  for (const state of states) {
    const { policy, account, month, spent, projected } = state;
    const budget = asKind(
      rules.current.policies.set.policies.find(({ name }) => name === policy),
      'budget',
    );
    if (budget === undefined) continue;
    metrics.set('ebb_budget_step', { account, policy }, stepReached(state, budget, clock.now()));
    if (spent !== null) metrics.set('ebb_budget_spent_ratio', { account, policy }, spent / month.amount);
    for (const [bound, value] of Object.entries(projected ?? {})) {
      metrics.set('ebb_budget_projected_ratio', { account, policy, bound }, value / month.amount);
    }
  }
}

const EVENT_TEXTS = {
  reached: 'is reached',
  begun: 'is reached, and its limits hold from now on',
  ended: 'has ended: its limits hold no longer',
} as const;

function describeEvent({ kind, step, budget, state }: BudgetEvent): string {
  const limits = kind === 'begun' ? ` (${limitsText(step)})` : '';
  return `${budget.name}: step ${stepText(step)} ${EVENT_TEXTS[kind]}${limits}; ${describeBudget(state)}`;
}

function logStep({ log }: Telemetry, event: BudgetEvent): void {
  const { kind, step, budget, state } = event;
  const fields = {
    event: 'ebb.budget_step',
    policy: budget.name,
    account: state.account,
    step: stepText(step),
    change: kind,
    spent: state.spent,
    projected: state.projected,
    amount: state.month.amount,
    unit: state.month.unit,
    ...(budget.owner !== undefined && { owner: budget.owner }),
  };
  if (kind === 'ended') log.info(fields, describeEvent(event));
  else log.warn(fields, describeEvent(event));
}

/* The state of each budget this month: how much is spent, and which steps are reached. */

/** A step of a budget that is reached, begins or ends. */
interface BudgetEvent extends StepEvent {
  budget: BudgetPolicy;
  state: BudgetState;
}

interface BudgetsInput {
  policies: CompiledPolicies;
  costs: CostRules;
  before: readonly BudgetState[];
  releases: readonly BudgetRelease[];
  /** Includes deleted projects, since their usage is spent. If a project occurs twice, its last name counts. */
  projects: readonly ProjectNames[];
  computes: readonly ComputeIdentity[];
  organizations: readonly (Organization & { stored: UsageReader })[];
  nowMs: number;
}

/**
 * Advances the state of each budget in each account. Without known usage, only releases change a state. States of budgets that the policies
 * no longer have are dropped.
 */
export async function advanceBudgets(input: BudgetsInput): Promise<{ states: BudgetState[]; events: BudgetEvent[] }> {
  const { policies, before, releases, nowMs } = input;
  const states: BudgetState[] = [];
  const events: BudgetEvent[] = [];
  for (const budget of policiesOfKind(policies.set.policies, 'budget')) {
    const release = releases.findLast(({ policy }) => policy === budget.name);
    const accounts = new Set(input.organizations.map(({ account }) => account));
    const statesOfBudget = before.filter(({ policy }) => policy === budget.name);
    for (const account of new Set([...accounts, ...statesOfBudget.map((state) => state.account)])) {
      const stateBefore = statesOfBudget.find((state) => state.account === account);
      const current = stateBefore && released(stateBefore, release, nowMs);
      const facts = await factsOf(input, budget, account);
      if (!facts) {
        if (current) states.push(current);
        continue;
      }
      const { state, events: steps } = advanceBudget(current, { policy: budget.name, account, terms: budget }, facts);
      states.push(state);
      events.push(...steps.map((step) => ({ ...step, budget, state })));
    }
  }
  return { states, events };
}

/** Applies a release once: to steps that limited when it was requested. */
function released(state: BudgetState, release: BudgetRelease | undefined, nowMs: number): BudgetState {
  if (!release || release.atMs < state.fromMs) return state;
  const wasLimiting = state.spans.some(
    ({ fromMs, untilMs }) => fromMs <= release.atMs && release.atMs < untilMs && nowMs < untilMs,
  );
  return wasLimiting ? releaseBudget(state, nowMs) : state;
}

/** Sums up a budget's month; undefined if it selects nothing in the account, or no usage has been read yet. */
async function factsOf(input: BudgetsInput, budget: BudgetPolicy, account: string): Promise<BudgetFacts | undefined> {
  const { organizations, costs, nowMs } = input;
  const selected = unitsOf(input, budget, account);
  if (selected.size === 0) return undefined;
  let facts: BudgetFacts | undefined;
  for (const { stored } of organizations.filter((one) => one.account === account)) {
    const metadata = await stored.metadata();
    if (!metadata) continue;
    const units = (await stored.units()).filter((unit) => selected.has(unitName(unit)));
    const month = billingMonth(nowMs, metadata.plans, nowMs);
    const bill = {
      series: (await stored.read(units)).map(seriesOf),
      byProject: true,
      lineOf: ({ projectId }: UsageUnit) => projectId,
      priceAt: pricesOf(metadata, costs, account),
    };
    // The organizations of an account share one amount, and the billing month of the first one.
    facts ??= { nowMs, month, spent: 0, unknownHours: 0, unknown: 0, knownUntilMs: 0, days: new Map() };
    const amountOf = ({ cuSeconds, usd }: BillLine) => (budget.month.unit === 'usd' ? usd : cuSeconds / 3600);
    facts = addMonth(facts, bill, amountOf);
  }
  return facts;
}

type Bill = Omit<Parameters<typeof dailyLines>[0], 'fromMs' | 'toMs'>;

/** Adds the bill of one more organization: its amount this month, and that of each past day. */
function addMonth(facts: BudgetFacts, bill: Bill, amountOf: (line: BillLine) => number | undefined): BudgetFacts {
  const { month } = facts;
  const thisMonth = billOf({ ...bill, fromMs: month.fromMs, toMs: month.untilMs });
  const days = new Map(facts.days);
  const todayMs = month.untilMs - (month.untilMs % DAY_MS);
  const past = { fromMs: Math.max(todayMs - PAST_DAYS * DAY_MS, firstBucketMs(bill.series)), toMs: todayMs };
  const pastLines = [...dailyLines({ ...bill, ...past })];
  const unknownDays = new Set<number>();
  for (const { dayMs, line } of pastLines) {
    const amount = amountOf(line);
    if (amount === undefined || line.unknownHours > 0) unknownDays.add(dayMs);
    else days.set(dayMs, (days.get(dayMs) ?? 0) + amount);
  }
  // Days without use have no line. Days before the first use are unknown.
  for (let dayMs = Math.min(...days.keys(), ...unknownDays); dayMs < past.toMs; dayMs += DAY_MS) {
    days.set(dayMs, days.get(dayMs) ?? 0);
  }
  for (const dayMs of unknownDays) days.delete(dayMs);
  const pastByName = groupBy(
    pastLines.map(({ line }) => line),
    ({ name }) => name,
  );
  const unknown = thisMonth.lines.flatMap(({ name, unknownHours }) =>
    expectedInUnknown(unknownHours, { ...past, lines: pastByName.get(name) ?? [] }),
  );
  return {
    ...facts,
    spent: plus(facts.spent, amountOf(thisMonth.total)),
    unknownHours: facts.unknownHours + thisMonth.total.unknownHours,
    unknown: unknown.map(amountOf).reduce(plus, facts.unknown),
    knownUntilMs: Math.max(facts.knownUntilMs, lastKnownMs(bill.series)),
    days,
  };
}

/** Returns the sum; undefined if a summand is undefined. */
function plus(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? undefined : one + other;
}

/** Names of the units that a budget counts: branches if it selects by them, else whole projects. */
function unitsOf({ policies, projects, computes }: BudgetsInput, budget: BudgetPolicy, account: string): Set<string> {
  if (selectsByBranch(budget.select)) {
    const index = policies.set.policies.indexOf(budget);
    const isSelected = (compute: ComputeIdentity) =>
      compute.account === account && policies.selects(index, compute, AT_ANY_AGE);
    return new Set(computes.filter(isSelected).map(({ projectId, branchId }) => unitName({ projectId, branchId })));
  }
  // By project, since a project without computes counts, too.
  const matches = compileProjectSelector(budget.select);
  const projectsById = new Map(projects.map((project) => [project.projectId, project]));
  const selected = [...projectsById.values()].filter(
    (project) => project.account === account && matches(project) === 'yes',
  );
  return new Set(selected.map(({ projectId }) => unitName({ projectId, branchId: null })));
}
