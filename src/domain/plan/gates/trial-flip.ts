import type { Gate } from './gate.ts';

/**
 * A trial adds no restart. A size that differs only because the unit has changed its arm waits for sleep, or until something else than
 * the trial changes it anyway.
 */
export const trialFlip: Gate = ({ change, nowMs, trial }) => {
  if (change.group !== 'size' || !change.disconnects || change.urgent || change.hard || !trial) return undefined;
  const flippedAtMs = trial.flips.findLast((flipMs) => flipMs <= nowMs);
  if (flippedAtMs === undefined || !trial.isOnlyFlipped()) return undefined;
  const boundaryMs = trial.lastBoundaryWithout();
  if (boundaryMs !== undefined && boundaryMs >= flippedAtMs) return undefined;
  const untilMs = trial.nextBoundaryWithout();
  const message = `trial ${trial.policy} adds no restart: waiting for sleep, or for the next change of a withdrawn policy`;
  return { code: 'trial_flip', message, ...(untilMs !== undefined && { untilMs }) };
};
