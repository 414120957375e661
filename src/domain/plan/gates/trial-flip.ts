import { type Size, sameSize } from '../../compute/compute.ts';
import type { Gate } from './gate.ts';

/**
 * A trial must not cause a restart. If the size is wanted only because the unit changed its arm, waits until the compute sleeps or until
 * the size would have changed without the trial. Once ebb has changed the size in the new arm, later changes have other causes.
 */
export const trialFlip: Gate = ({ change, record, nowMs, trial }) => {
  if (change.group !== 'size' || !change.disconnects || change.urgent || change.hard || !trial) return undefined;
  const flippedAtMs = trial.flips.findLast((flipMs) => flipMs <= nowMs);
  if (flippedAtMs === undefined || sameSize(trial.wantedSizeInOtherArm(), change.fields as Size)) return undefined;
  const changedAtMs = record?.lastChanges?.size?.answeredAtMs;
  if (changedAtMs !== undefined && changedAtMs >= flippedAtMs) return undefined;
  const boundaryMs = trial.lastBoundaryWithoutTrial();
  if (boundaryMs !== undefined && boundaryMs >= flippedAtMs) return undefined;
  const untilMs = trial.nextBoundaryWithoutTrial();
  const message = `trial ${trial.policy} adds no restart: waiting for sleep, or for the next change of a withdrawn policy`;
  return { code: 'trial_flip', message, ...(untilMs !== undefined && { untilMs }) };
};
