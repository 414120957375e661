/** The stored state of budgets: decided by the leader, read by every daemon and command. */

import { mapEstimate } from '../../domain/estimate.ts';
import type { BudgetState } from '../../domain/spend/state.ts';
import { STEP_END_SPREAD_MS, type StepSpan, stepText } from '../../domain/spend/terms.ts';
import { toHundredths } from '../../domain/sum.ts';
import { isoInstant } from '../../domain/time/units.ts';
import type { BudgetDocument } from '../../ports/cost-documents.ts';
import type { DocumentStore } from '../../ports/store.ts';
import { type OpenDocument, sharedDocuments } from '../shared-documents.ts';

const STATES = sharedDocuments<readonly BudgetState[]>('budgets', 1);
const RELEASES = sharedDocuments<readonly BudgetRelease[]>('budget-releases', 1);
const NAME = 'all';

type Documents = Pick<DocumentStore, 'document' | 'replaceDocument'>;

/** A person's request to end the current steps of a budget. */
export interface BudgetRelease {
  policy: string;
  who: string;
  /** Milliseconds since the epoch. */
  atMs: number;
}

/** More are not kept, since each is valid for a month at most, and only the newest of a budget counts. */
const MAX_RELEASES = 200;

/** Attempts to store a release while others write at the same time. */
const MAX_TRIES = 50;

/** The states of all budgets; undefined if none are stored, or another version wrote them: the caller then keeps its own. */
export function readBudgets(store: Pick<DocumentStore, 'document'>): Promise<readonly BudgetState[] | undefined> {
  return STATES.read(store, NAME);
}

/** Opens the states for the leader to replace, which fails if another daemon has replaced them meanwhile. */
export function openBudgets(store: Documents): Promise<OpenDocument<readonly BudgetState[]>> {
  return STATES.open(store, NAME);
}

export async function readReleases(store: Pick<DocumentStore, 'document'>): Promise<readonly BudgetRelease[]> {
  return (await RELEASES.read(store, NAME)) ?? [];
}

/** Stores a release for the leader, in place of an older one of the budget. Throws if concurrent writes never stop. */
export async function addRelease(store: Documents, release: BudgetRelease): Promise<void> {
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const stored = await RELEASES.open(store, NAME);
    const others = (stored.value ?? []).filter(({ policy }) => policy !== release.policy);
    if (await stored.replace([...others, release].slice(-MAX_RELEASES))) return;
  }
  throw new Error(
    `the release of budget ${release.policy} could not be stored: other releases were stored at the same time; try again`,
  );
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
