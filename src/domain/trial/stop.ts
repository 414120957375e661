/** Trials that are ended early because of what they cost. */
import type { SavingsInput } from './savings.ts';
import { savingsOf } from './savings.ts';

/** The leader's word that a trial has ended for all units. */
export interface TrialStop {
  /** Name of the policy, and the digest of its terms: another trial under this name goes on. */
  policy: string;
  terms: string;
  /** Milliseconds since the epoch. */
  stoppedAtMs: number;
  /** Its cost at that time, US dollars. */
  costUsd: number;
}

export function isStopOf({ policy, terms }: TrialStop, trial: { name: string; digest: string }): boolean {
  return policy === trial.name && terms === trial.digest;
}

/**
 * The cost of the trial, in US dollars, if that is more than `mostUsd`; else undefined. It is the middle of the measured cost of `ebb
 * savings`. A cost that is not measurable, or has no price, is not known to be too high.
 */
export function tooHighCost(input: SavingsInput, mostUsd: number): number | undefined {
  const { usd } = savingsOf(input).trialCost;
  return usd && usd.mid > mostUsd ? usd.mid : undefined;
}
