/** The stored state of budgets: decided by the leader, read by every daemon and command. */

import { mapEstimate } from '../../domain/estimate.ts';
import type { BudgetState } from '../../domain/spend/state.ts';
import { STEP_END_SPREAD_MS, type StepSpan, stepText } from '../../domain/spend/terms.ts';
import { toHundredths } from '../../domain/sum.ts';
import { isoInstant } from '../../domain/time/units.ts';
import type { BudgetDocument } from '../../ports/cost-documents.ts';
import { sharedDocument } from '../shared-documents.ts';

/** The states of all budgets, which the leader replaces. While they can't be read, callers keep the states that they know. */
export const {
  read: readBudgets,
  open: openBudgets,
  update: updateBudgets,
} = sharedDocument<readonly BudgetState[]>('budgets', 'all', 1);

export const { read: readReleases, update: updateReleases } = sharedDocument<readonly BudgetRelease[]>(
  'budget-releases',
  'all',
  1,
);

/** A person's request to end the current steps of a budget. */
export interface BudgetRelease {
  policy: string;
  who: string;
  /** Milliseconds since the epoch. */
  atMs: number;
}

/** Older releases are dropped: each is valid for a month at most, and only the newest of a budget counts. */
const MAX_RELEASES = 200;

/** Stores a release for the leader, in place of an older one of the budget. Throws if concurrent writes never stop. */
export async function addRelease(store: Parameters<typeof updateReleases>[0], release: BudgetRelease): Promise<void> {
  const others = (stored: readonly BudgetRelease[]) => stored.filter(({ policy }) => policy !== release.policy);
  if (await updateReleases(store, (stored = []) => [...others(stored), release].slice(-MAX_RELEASES))) return;
  throw new Error(
    `the release of budget ${release.policy} could not be stored: other releases were stored at the same time; try again`,
  );
}

/** The budgets as this daemon last read or decided them. A store that has lost its data gets them back from here. */
export interface KnownBudgets {
  states?: readonly BudgetState[] | undefined;
  releases?: readonly BudgetRelease[] | undefined;
}

/** Of two states of a budget in an account, the one by later usage or a later decision stays. */
export function mergeStates(stored: readonly BudgetState[], known: readonly BudgetState[]): BudgetState[] {
  const keyOf = ({ policy, account }: BudgetState) => JSON.stringify([policy, account]);
  const merged = new Map(stored.map((state) => [keyOf(state), state]));
  for (const state of known) {
    const other = merged.get(keyOf(state));
    const laterMs = other && (state.knownUntilMs - other.knownUntilMs || state.decidedAtMs - other.decidedAtMs);
    if (laterMs === undefined || laterMs > 0) merged.set(keyOf(state), state);
  }
  return [...merged.values()];
}

/** Of two releases of a budget, the later one stays. */
export function mergeReleases(stored: readonly BudgetRelease[], known: readonly BudgetRelease[]): BudgetRelease[] {
  const byTime = [...stored, ...known].toSorted((a, b) => a.atMs - b.atMs);
  return [...new Map(byTime.map((release) => [release.policy, release])).values()];
}

/** The spans in which the steps of budgets limit computes. */
export function spansOf(states: readonly Pick<BudgetState, 'spans'>[]): StepSpan[] {
  return states.flatMap(({ spans }) => spans);
}

export function budgetDocument(state: BudgetState, nowMs: number): BudgetDocument {
  const { policy: budget, account, month, fromMs, toMs, knownUntilMs, spent, projected, unknownHours } = state;
  return {
    budget,
    account,
    month,
    from: isoInstant(fromMs),
    to: isoInstant(toMs),
    known_until: isoInstant(knownUntilMs),
    spent: spent === null ? null : toHundredths(spent),
    projected: projected && mapEstimate(projected, toHundredths),
    unknown_hours: unknownHours,
    notified: state.notified.map(stepText),
    limiting: state.spans
      .filter(({ untilMs }) => untilMs + STEP_END_SPREAD_MS > nowMs)
      .map(({ at, of, fromMs: from, untilMs }) => ({ at, of, from: isoInstant(from), until: isoInstant(untilMs) })),
  };
}
