/** The state of guards of computes between two queries. Instants are milliseconds since the epoch. */

import { isoInstant, MINUTE_MS } from '../time/units.ts';
import type { GuardTerms } from './guard.ts';
import type { Verdict } from './verdict.ts';

/** How long a verdict counts, in milliseconds: three rounds of queries. After that it is unknown. */
const VERDICT_VALID_MS = 90_000;

/** A verdict, and the instant at which the guard was asked; absent if it was not. */
export type DatedVerdict = Verdict & { atMs?: number };

/** The watch of a compute after a lowering. */
export interface WatchState {
  loweredAtMs: number;
  /** How long the compute was awake with samples. */
  sampledMs: number;
  /** How long it was awake without samples. */
  blindMs: number;
  /** When the current run of bad samples began. */
  badSinceMs?: number;
  /** Set if the cause is not the lowering: the compute was bad before it, or other computes are bad, too. */
  isCommon?: true;
}

export interface GuardState {
  guard: string;
  /** The {@link guardKey} of the guard that was asked; absent if only a watch is known. */
  key?: string;
  verdict?: Verdict;
  /** When the guard was asked. */
  atMs?: number;
  watch?: WatchState;
}

/** By compute id. */
export type GuardStates = ReadonlyMap<string, readonly GuardState[]>;

/** Identifies the terms of a guard. With other terms it is another guard, to which old answers don't apply. */
export function guardKey({ name, source, query, match, badWhen, noData }: GuardTerms & { name: string }): string {
  return JSON.stringify([name, source, query, match, badWhen, noData]);
}

/** The verdict that counts at an instant; undefined if none is known. An old verdict becomes unknown, see {@link datedVerdict}. */
export function verdictAt(
  states: readonly GuardState[] | undefined,
  guard: GuardTerms & { name: string },
  nowMs: number,
): DatedVerdict | undefined {
  const key = guardKey(guard);
  const found = states?.find((state) => state.key === key);
  if (!found?.verdict || found.atMs === undefined) return undefined;
  return datedVerdict(found.verdict, found.atMs, nowMs);
}

/** A verdict with its instant. An old one becomes `unknown`, with a message that says what it was. */
export function datedVerdict(verdict: Verdict, atMs: number, nowMs: number): DatedVerdict {
  if (Math.abs(nowMs - atMs) <= VERDICT_VALID_MS) return { ...verdict, atMs };
  const message = `not asked since ${isoInstant(atMs)}, when it was ${verdict.state}: ${verdict.message}`;
  return { state: 'unknown', message, atMs };
}

/** One sentence about a watch. */
export function describeWatch(watch: WatchState, watchMs: number): string {
  const { loweredAtMs, sampledMs, blindMs, badSinceMs, isCommon } = watch;
  const minutes = (ms: number) => `${Math.floor(ms / MINUTE_MS)} min`;
  const parts = [`since ${isoInstant(loweredAtMs)}`, `${minutes(sampledMs)} of ${minutes(watchMs)} sampled`];
  if (blindMs > 0) parts.push(`${minutes(blindMs)} awake without samples`);
  if (badSinceMs !== undefined) parts.push(`bad since ${isoInstant(badSinceMs)}`);
  if (isCommon) parts.push('for a cause that others share');
  return parts.join(', ');
}
