/** The leader decides the steps of budgets from usage that is stored, keeps them for all daemons, and says what has happened. */
import { type BudgetState, describeBudget, stepReached } from '../../domain/budget/state.ts';
import { stepText } from '../../domain/budget/terms.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Telemetry } from '../../ports/telemetry.ts';
import { openBudgets, readReleases } from './budget-store.ts';
import { advanceBudgets, type BudgetEvent } from './budgets.ts';
import { type Identities, withPast } from './identities.ts';
import { computesOf, listedProjects, namesOf, organizationsNow, type SpendersDeps } from './spenders.ts';
import { usageAccount } from './usage-account.ts';

export interface BudgetRoundsDeps extends SpendersDeps {
  clock: Clock;
  telemetry: Telemetry;
  mode: 'enforce' | 'observe';
  /** Says no where these policies are not those of the group, or the clock is wrong. */
  mayWrite(): Promise<{ ok: boolean }>;
}

export interface BudgetRounds {
  /** Decides if there is new usage, or something else has changed by which steps are decided. */
  decide(isNewUsage: boolean, known: Identities): Promise<void>;
  /** Another daemon leads now: what this one knows is old. */
  forget(): void;
}

export function createBudgetRounds(deps: BudgetRoundsDeps): BudgetRounds {
  const { store, rules, telemetry, clock } = deps;
  let known: readonly BudgetState[] | undefined;
  let grounds: string | undefined;

  return {
    async decide(isNewUsage, identities) {
      const { policies, costs } = rules.current;
      const hasBudgets = policies.set.policies.some(({ kind }) => kind === 'budget');
      if (!hasBudgets && known?.length === 0) return;
      const releases = await readReleases(store);
      const now = JSON.stringify([policies.set.hash, releases]);
      if (!isNewUsage && now === grounds) return;
      grounds = undefined;
      const kept = await openBudgets(store);
      // Asked after what is kept was opened: what a newer leader keeps from now on is not overwritten.
      if (deps.mode === 'enforce' && !(await deps.mayWrite()).ok) return;
      // A store that came back empty takes nothing away.
      const before = kept.value ?? known ?? [];
      const { states, events } = await advanceBudgets({
        ...{ policies, costs, before, releases, nowMs: clock.now() },
        projects: [...identities.projects, ...listedProjects(deps).map(namesOf)],
        computes: withPast(computesOf(deps), identities.computes),
        organizations: organizationsNow(deps).map((one) => ({ ...one, kept: usageAccount(store, one) })),
      });
      if (!(await kept.replace(states))) return;
      known = states;
      grounds = now;
      for (const event of events) logStep(telemetry, event);
      showBudgets(deps, states);
    },
    forget() {
      if (known === undefined) return;
      clearBudgets(telemetry);
      known = undefined;
      grounds = undefined;
    },
  };
}

function clearBudgets({ metrics }: Telemetry): void {
  metrics.clear('ebb_budget_spent_ratio');
  metrics.clear('ebb_budget_projected_ratio');
  metrics.clear('ebb_budget_step');
}

function showBudgets({ telemetry, rules, clock }: BudgetRoundsDeps, states: readonly BudgetState[]): void {
  const { metrics } = telemetry;
  clearBudgets(telemetry);
  for (const state of states) {
    const { policy, account, month, spent, projected } = state;
    const budget = rules.current.policies.set.policies.find(({ name }) => name === policy);
    if (budget?.kind !== 'budget') continue;
    metrics.set('ebb_budget_step', { account, policy }, stepReached(state, budget, clock.now()));
    if (spent !== null) metrics.set('ebb_budget_spent_ratio', { account, policy }, spent / month.amount);
    for (const [bound, value] of Object.entries(projected ?? {})) {
      metrics.set('ebb_budget_projected_ratio', { account, policy, bound }, value / month.amount);
    }
  }
}

const WHAT = {
  reached: 'is reached',
  begun: 'is reached, and its limits hold from now on',
  ended: 'has ended: its limits hold no longer',
} as const;

function describeEvent({ kind, step, budget, state }: BudgetEvent): string {
  return `${budget.name}: step ${stepText(step)} ${WHAT[kind]}; ${describeBudget(state)}`;
}

function logStep({ log }: Telemetry, event: BudgetEvent): void {
  const { kind, step, budget, state } = event;
  const fields = {
    ...{ event: 'ebb.budget_step', policy: budget.name, account: state.account, step: stepText(step), change: kind },
    ...{ spent: state.spent, projected: state.projected, amount: state.month.amount, unit: state.month.unit },
    ...(budget.owner !== undefined && { owner: budget.owner }),
  };
  if (kind === 'ended') log.info(fields, describeEvent(event));
  else log.warn(fields, describeEvent(event));
}
