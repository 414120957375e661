/** What the store keeps of budgets: the leader decides it, and every daemon and command reads it. */
import type { BudgetState } from '../../domain/budget/state.ts';
import { type StepSpan, stepText } from '../../domain/budget/terms.ts';
import { SPREAD_MS } from '../../domain/decide/budget-steps.ts';
import { isoInstant } from '../../domain/time/instants.ts';
import type { BudgetDocument } from '../../ports/documents.ts';
import type { UsageStore } from '../../ports/store.ts';

/** Where it is: no account has this name. */
const ACCOUNT = ' ';
const STATES = 'budgets';
const RELEASES = 'budget-releases';
const VERSION = 1;

/** A person's word that the steps of a budget that limit now are to end. */
export interface BudgetRelease {
  policy: string;
  who: string;
  /** Milliseconds since the epoch. */
  atMs: number;
}

/** More are not kept: each counts for a month at most, and only the last of a budget. */
const MOST_RELEASES = 200;

/** What is kept of every budget; undefined if nothing is, or by another version: then what is known stays. */
export async function readBudgets(store: Pick<UsageStore, 'usage'>): Promise<BudgetState[] | undefined> {
  return readEntries(store, STATES);
}

export async function keepBudgets(store: UsageStore, states: readonly BudgetState[]): Promise<void> {
  await putEntries(store, STATES, states);
}

export async function readReleases(store: Pick<UsageStore, 'usage'>): Promise<BudgetRelease[]> {
  return (await readEntries<BudgetRelease>(store, RELEASES)) ?? [];
}

/** Keeps a release until the leader comes to it; of a budget the newest counts. */
export async function addRelease(store: UsageStore, release: BudgetRelease): Promise<void> {
  const others = (await readReleases(store)).filter(({ policy }) => policy !== release.policy);
  await putEntries(store, RELEASES, [...others, release].slice(-MOST_RELEASES));
}

/** When which steps limit, of all budgets. */
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
      .filter(({ untilMs }) => untilMs + SPREAD_MS > nowMs)
      .map(({ at, of, fromMs: from, untilMs }) => ({ at, of, from: isoInstant(from), until: isoInstant(untilMs) })),
  };
}

function rounded(value: number): number {
  return Math.round(value * 100) / 100;
}

/** The entries of a list that the leader keeps for the whole group; undefined if there is none, or of another version. */
export async function readEntries<Entry>(store: Pick<UsageStore, 'usage'>, unit: string): Promise<Entry[] | undefined> {
  const bytes = (await store.usage(ACCOUNT, [unit])).get(unit);
  if (bytes === undefined) return undefined;
  try {
    const { version, entries } = JSON.parse(new TextDecoder().decode(bytes));
    return version === VERSION && Array.isArray(entries) ? entries : undefined;
  } catch {
    return undefined;
  }
}

export function putEntries(store: UsageStore, unit: string, entries: readonly unknown[]): Promise<void> {
  const bytes = new TextEncoder().encode(JSON.stringify({ version: VERSION, entries }));
  return store.putUsage(ACCOUNT, new Map([[unit, bytes]]));
}
