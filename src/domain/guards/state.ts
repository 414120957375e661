/** The state that daemons keep of a guard and a compute between two questions. Instants are milliseconds since the epoch. */

import { formatDuration } from '../compute/compute-units.ts';
import { isoInstant, MINUTE_MS } from '../time/units.ts';
import type { GuardTerms } from './guard.ts';
import type { Verdict } from './verdict.ts';

/** An older verdict counts as unknown, in milliseconds: three rounds. */
const VERDICT_VALID_MS = 90_000;

/** A verdict with the instant of its question, if there was one. */
export type DatedVerdict = Verdict & { atMs?: number };

/** The watch of a compute after a lowering. */
export interface WatchState {
  loweredAtMs: number;
  /** The time awake with samples, and without. */
  sampledMs: number;
  blindMs: number;
  /** The first sample of the present bad stretch. */
  badSinceMs?: number;
  /** True if a common cause explains it, such as other computes that are bad, too. */
  isCommon?: true;
}

export interface GuardState {
  guard: string;
  /** Of the guard that was asked, see {@link guardKey}; absent: only a watch is known. */
  key?: string;
  verdict?: Verdict;
  /** When it was asked. */
  atMs?: number;
  watch?: WatchState;
}

/** By compute id. */
export type GuardStates = ReadonlyMap<string, readonly GuardState[]>;

/** Identifies the terms of a guard. With other terms it is another guard, to which old answers don't apply. */
export function guardKey({ name, source, query, match, badWhen, noData }: GuardTerms & { name: string }): string {
  return JSON.stringify([name, source, query, match, badWhen, noData]);
}

/** The verdict that counts at an instant; undefined if none is known. An old one is unknown, and says what it was. */
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

/** A verdict with its instant; an old one is unknown, and says what it was. */
export function datedVerdict(verdict: Verdict, atMs: number, nowMs: number): DatedVerdict {
  if (Math.abs(nowMs - atMs) <= VERDICT_VALID_MS) return { ...verdict, atMs };
  const message = `not asked since ${isoInstant(atMs)}, when it was ${verdict.state}: ${verdict.message}`;
  return { state: 'unknown', message, atMs };
}

/** `12 s ago`. A clock may be a little ahead: then it is 0 s. */
export function ageText(atMs: number, nowMs: number): string {
  const seconds = Math.max(0, Math.round((nowMs - atMs) / 1000));
  return seconds < 120 ? `${seconds} s ago` : `${formatDuration(Math.round(seconds / 60) * (MINUTE_MS / 1000))} ago`;
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
