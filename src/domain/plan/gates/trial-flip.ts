import { type Size, sameSize } from '../../compute/compute.ts';
import type { Gate } from './gate.ts';

/**
 * A trial adds no restart. A size that is wanted because the unit has changed its arm waits for sleep, or until something else than the
 * trial would change it anyway: whatever the present size, also where an earlier change was still pending. Once ebb has changed the size
 * in the new arm, the next wish has another cause.
 */
export const trialFlip: Gate = ({ change, record, nowMs, trial }) => {
  if (change.group !== 'size' || !change.disconnects || change.urgent || change.hard || !trial) return undefined;
  const flippedAtMs = trial.flips.findLast((flipMs) => flipMs <= nowMs);
  if (flippedAtMs === undefined || sameSize(trial.wantsInOtherArm(), change.fields as Size)) return undefined;
  const changedAtMs = record?.lastChanges?.size?.answeredAtMs;
  if (changedAtMs !== undefined && changedAtMs >= flippedAtMs) return undefined;
  const boundaryMs = trial.lastBoundaryWithout();
  if (boundaryMs !== undefined && boundaryMs >= flippedAtMs) return undefined;
  const untilMs = trial.nextBoundaryWithout();
  const message = `trial ${trial.policy} adds no restart: waiting for sleep, or for the next change of a withdrawn policy`;
  return { code: 'trial_flip', message, ...(untilMs !== undefined && { untilMs }) };
};
