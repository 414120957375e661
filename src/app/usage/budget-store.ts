/** The stored state of budgets: decided by the leader, read by every daemon and command. */

import { STEP_END_SPREAD_MS } from '../../domain/decide/budget-steps.ts';
import type { BudgetState } from '../../domain/spend/state.ts';
import { type StepSpan, stepText } from '../../domain/spend/terms.ts';
import { isoInstant } from '../../domain/time/units.ts';
import type { BudgetDocument } from '../../ports/cost-documents.ts';
import type { DocumentStore } from '../../ports/store.ts';
import { type OpenDocument, sharedDocuments } from '../shared-documents.ts';

const STATES = sharedDocuments<readonly BudgetState[]>('budgets', 1);
const RELEASES = sharedDocuments<readonly BudgetRelease[]>('budget-releases', 1);
const NAME = 'all';

type Documents = Pick<DocumentStore, 'document' | 'replaceDocument'>;

/** A person's word that the steps of a budget that limit now are to end. */
export interface BudgetRelease {
  policy: string;
  who: string;
  /** Milliseconds since the epoch. */
  atMs: number;
}

/** More are not kept: each counts for a month at most, and only the last of a budget. */
const MOST_RELEASES = 200;

/** Attempts of a release while others write in between. */
const MOST_TRIES = 50;

/** The state of every budget; undefined if there is none, or if another version wrote it: then the caller keeps what it has. */
export function readBudgets(store: Pick<DocumentStore, 'document'>): Promise<readonly BudgetState[] | undefined> {
  return STATES.read(store, NAME);
}

/** The same, for the leader to replace: that fails if another daemon has decided meanwhile. */
export function openBudgets(store: Documents): Promise<OpenDocument<readonly BudgetState[]>> {
  return STATES.open(store, NAME);
}

export async function readReleases(store: Pick<DocumentStore, 'document'>): Promise<readonly BudgetRelease[]> {
  return (await RELEASES.read(store, NAME)) ?? [];
}

/** Keeps a release until the leader comes to it; of a budget the newest counts. Throws if others come in between all the time. */
export async function addRelease(store: Documents, release: BudgetRelease): Promise<void> {
  for (let tries = 0; tries < MOST_TRIES; tries += 1) {
    const kept = await RELEASES.open(store, NAME);
    const others = (kept.value ?? []).filter(({ policy }) => policy !== release.policy);
    if (await kept.replace([...others, release].slice(-MOST_RELEASES))) return;
  }
  throw new Error(`the release of budget ${release.policy} could not be kept: others are being kept all the time`);
}

/** When which steps of all budgets limit. */
export function spansOf(states: readonly Pick<BudgetState, 'spans'>[]): StepSpan[] {
  return states.flatMap(({ spans }) => spans);
}

/** As people see it everywhere. */
export function budgetDocument(state: BudgetState, nowMs: number): BudgetDocument {
  const { policy: budget, account, month, fromMs, toMs, knownUntilMs, spent, projected, unknownHours } = state;
  const { low, mid, high } = projected ?? { low: 0, mid: 0, high: 0 };
  return {
    ...{
      budget,
      account,
      month,
      from: isoInstant(fromMs),
      to: isoInstant(toMs),
      known_until: isoInstant(knownUntilMs),
    },
    spent: spent === null ? null : rounded(spent),
    projected: projected && { low: rounded(low), mid: rounded(mid), high: rounded(high) },
    unknown_hours: unknownHours,
    notified: state.notified.map(stepText),
    limiting: state.spans
      .filter(({ untilMs }) => untilMs + STEP_END_SPREAD_MS > nowMs)
      .map(({ at, of, fromMs: from, untilMs }) => ({ at, of, from: isoInstant(from), until: isoInstant(untilMs) })),
  };
}

function rounded(value: number): number {
  return Math.round(value * 100) / 100;
}
