/** How often the daemons of a simulation do their rounds. */

import { diceOf, type FaultKind, type SimPlan } from './plan.ts';

/** As often as the daemon's own, but for the check of the files: it costs as much as all others. Twice within a rest of 10 s. */
export const USUAL = {
  inventoryMs: 45_000,
  resyncMs: 45_000,
  waitingMs: 60_000,
  rulesMs: 5_000,
  samplingMs: 60_000,
  guardsMs: 30_000,
  wasteMs: 3_600_000,
  usageMs: 3_600_000,
};

/** Longer than a simulation: then a round makes up for nothing that was left undone, in milliseconds. */
const NEVER_MS = 1_200_000;

/** Where the store is away, triggers are lost: then only rounds find what is left to be done. */
const LOSES: ReadonlySet<FaultKind> = new Set(['store_down', 'store_unanswered']);

/** The rounds of the resync loop make up for triggers that were lost. In most seeds they don't come. */
export function rhythmOf({ seed, actions }: Pick<SimPlan, 'seed' | 'actions'>): typeof USUAL {
  if (actions.some((action) => action.do === 'fault' && LOSES.has(action.kind))) return USUAL;
  const dice = diceOf(seed ^ 0x10075);
  const [addsAgain, looksAgain] = [dice.is(0.2), dice.is(0.15)];
  return { ...USUAL, ...(!addsAgain && { resyncMs: NEVER_MS }), ...(!looksAgain && { waitingMs: NEVER_MS }) };
}
