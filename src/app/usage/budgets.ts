/** What budgets have used up this month, and the steps that they have reached: only the leader decides it. */
import {
  advanceBudget,
  type BudgetFacts,
  type BudgetState,
  releaseBudget,
  type StepEvent,
} from '../../domain/budget/state.ts';
import type { ComputeIdentity } from '../../domain/compute/compute.ts';
import type { CompiledPolicies } from '../../domain/policy/compiled-policies.ts';
import type { BudgetPolicy } from '../../domain/policy/kinds/budget.ts';
import { compileProjectSelector, type ProjectNames } from '../../domain/policy/select.ts';
import { type BillLine, dailyLines } from '../../domain/usage/bill.ts';
import { DAY_MS } from '../../domain/usage/known.ts';
import { billingMonth, priceAt } from '../../domain/usage/month.ts';
import { PAST_DAYS } from '../../domain/usage/projection.ts';
import { seriesOf } from '../../domain/usage/stored.ts';
import { type UsageSeries, unitName } from '../../domain/usage/usage.ts';
import type { CostRules } from '../../ports/rules.ts';
import type { BudgetRelease } from './budget-store.ts';
import type { Organization, UsageReader } from './usage-account.ts';

/** What happened to a step, of which budget, and how things stand. */
export interface BudgetEvent extends StepEvent {
  budget: BudgetPolicy;
  state: BudgetState;
}

export interface BudgetsInput {
  policies: CompiledPolicies;
  costs: CostRules;
  before: readonly BudgetState[];
  releases: readonly BudgetRelease[];
  /** Deleted ones, too, as far as they are known: what they used is spent. Of a project that comes twice the last name counts. */
  projects: readonly ProjectNames[];
  computes: readonly ComputeIdentity[];
  /** Each with what is kept of its usage. */
  organizations: readonly (Organization & { kept: UsageReader })[];
  nowMs: number;
}

/**
 * Every budget as it is by now, by policy and account. A budget of which nothing is known in an account stays as it was; one that the
 * policies no longer have is forgotten.
 */
export async function advanceBudgets(input: BudgetsInput): Promise<{ states: BudgetState[]; events: BudgetEvent[] }> {
  const { policies, before, releases, nowMs } = input;
  const states: BudgetState[] = [];
  const events: BudgetEvent[] = [];
  for (const budget of policies.set.policies) {
    if (budget.kind !== 'budget') continue;
    const release = releases.findLast(({ policy }) => policy === budget.name);
    const accounts = new Set(input.organizations.map(({ account }) => account));
    const own = before.filter(({ policy }) => policy === budget.name);
    for (const account of new Set([...accounts, ...own.map((state) => state.account)])) {
      const known = own.find((state) => state.account === account);
      const kept = known && released(known, release, nowMs);
      const facts = await factsOf(input, budget, account);
      if (!facts) {
        if (kept) states.push(kept);
        continue;
      }
      const { state, events: news } = advanceBudget(kept, { policy: budget.name, account, terms: budget }, facts);
      states.push(state);
      events.push(...news.map((one) => ({ ...one, budget, state })));
    }
  }
  return { states, events };
}

/** A release counts once, for the steps that limited when a person asked for it. */
function released(state: BudgetState, release: BudgetRelease | undefined, nowMs: number): BudgetState {
  if (!release || release.atMs < state.fromMs) return state;
  const begunBefore = state.spans.some(
    ({ fromMs, untilMs }) => fromMs <= release.atMs && release.atMs < untilMs && nowMs < untilMs,
  );
  return begunBefore ? releaseBudget(state, nowMs) : state;
}

/** Undefined if the budget selects nothing in the account, or none of its usage was read yet. */
async function factsOf(input: BudgetsInput, budget: BudgetPolicy, account: string): Promise<BudgetFacts | undefined> {
  const { organizations, costs, nowMs } = input;
  const selected = unitsOf(input, budget, account);
  if (selected.size === 0) return undefined;
  let facts: BudgetFacts | undefined;
  for (const { kept } of organizations.filter((one) => one.account === account)) {
    const about = await kept.about();
    if (!about) continue;
    const units = (await kept.units()).filter((unit) => selected.has(unitName(unit)));
    const month = billingMonth(nowMs, about.plans, nowMs);
    const bill = {
      ...{ series: (await kept.read(units)).map(seriesOf), byProject: false, lineOf: () => '' },
      priceAt: (startMs: number) =>
        priceAt(startMs, { plans: about.plans, prices: costs.prices, otherwise: costs.plans.get(account) }),
    };
    // Several organizations of an account have one amount, and the month of the first.
    facts ??= { nowMs, month, spent: 0, unknownHours: 0, knownUntilMs: 0, days: new Map() };
    const amountOf = ({ cuSeconds, usd }: BillLine) => (budget.month.unit === 'usd' ? usd : cuSeconds / 3600);
    facts = addMonth(facts, bill, amountOf);
  }
  return facts;
}

type Bill = Omit<Parameters<typeof dailyLines>[0], 'fromMs' | 'toMs'>;

function addMonth(facts: BudgetFacts, bill: Bill, amountOf: (line: BillLine) => number | undefined): BudgetFacts {
  const { month } = facts;
  let { spent, unknownHours } = facts;
  for (const { line } of dailyLines({ ...bill, fromMs: month.fromMs, toMs: month.untilMs })) {
    const amount = amountOf(line);
    spent = spent === undefined || amount === undefined ? undefined : spent + amount;
    unknownHours += line.unknownHours;
  }
  const days = new Map(facts.days);
  const todayMs = month.untilMs - (month.untilMs % DAY_MS);
  const past = { fromMs: Math.max(todayMs - PAST_DAYS * DAY_MS, firstOf(bill.series)), toMs: todayMs };
  const unknown = new Set<number>();
  for (const { dayMs, line } of dailyLines({ ...bill, ...past })) {
    const amount = amountOf(line);
    if (amount === undefined || line.unknownHours > 0) unknown.add(dayMs);
    else days.set(dayMs, (days.get(dayMs) ?? 0) + amount);
  }
  // A day without use has no line. What was before the first use says nothing.
  for (let dayMs = Math.min(...days.keys(), ...unknown); dayMs < past.toMs; dayMs += DAY_MS) {
    days.set(dayMs, days.get(dayMs) ?? 0);
  }
  for (const dayMs of unknown) days.delete(dayMs);
  return { ...facts, spent, unknownHours, knownUntilMs: Math.max(facts.knownUntilMs, lastKnown(bill.series)), days };
}

function firstOf(series: readonly UsageSeries[]): number {
  return Math.min(...series.flatMap(({ buckets }) => buckets.slice(0, 1).map(({ startMs }) => startMs)));
}

function lastKnown(series: readonly UsageSeries[]): number {
  const ends = series.map(({ buckets }) => {
    const last = buckets.findLast(({ cuSeconds }) => cuSeconds !== null);
    return last ? last.startMs + last.seconds * 1000 : 0;
  });
  return Math.max(0, ...ends);
}

/** Names of the units that a budget counts: branches if it selects by them, else whole projects. */
function unitsOf({ policies, projects, computes }: BudgetsInput, budget: BudgetPolicy, account: string): Set<string> {
  const { branches, branchRoles } = budget.select;
  if ((branches ?? branchRoles) !== undefined) {
    const index = policies.set.policies.indexOf(budget);
    const isOwn = (compute: ComputeIdentity) =>
      compute.account === account && policies.selects(index, compute, Number.POSITIVE_INFINITY);
    return new Set(computes.filter(isOwn).map(({ projectId, branchId }) => unitName({ projectId, branchId })));
  }
  // Projects have no computes at times, and count all the same.
  const matches = compileProjectSelector(budget.select);
  const named = new Map(projects.map((project) => [project.projectId, project]));
  const own = [...named.values()].filter((project) => project.account === account && matches(project) === 'yes');
  return new Set(own.map(({ projectId }) => unitName({ projectId, branchId: null })));
}
