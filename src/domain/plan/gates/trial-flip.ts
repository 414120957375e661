import { type ComputeSettings, hasSettings } from '../../compute/compute.ts';
import type { Gate } from './gate.ts';

/**
 * A trial must not cause a restart. A value that is wanted only because the unit changed its arm waits until the compute sleeps, or until
 * it would have changed without the trial. Once ebb has changed it in the new arm, later changes have other causes.
 */
export const trialFlip: Gate = ({ change, record, nowMs, trial }) => {
  const { group } = change;
  if (group === 'restart' || !change.disconnects || change.urgent || change.hard || !trial) return undefined;
  const flippedAtMs = trial.flips.findLast((flipMs) => flipMs <= nowMs);
  const inOtherArm = trial.wantedInOtherArm(group);
  if (flippedAtMs === undefined || (inOtherArm && hasSettings(change.fields as ComputeSettings, inOtherArm)))
    return undefined;
  const changedAtMs = record?.lastChanges?.[group]?.answeredAtMs;
  if (changedAtMs !== undefined && changedAtMs >= flippedAtMs) return undefined;
  const boundaryMs = trial.lastBoundaryWithoutTrial(group);
  if (boundaryMs !== undefined && boundaryMs >= flippedAtMs) return undefined;
  const untilMs = trial.nextBoundaryWithoutTrial(group);
  const message = `trial ${trial.policy} adds no restart: waiting for sleep, or for the next change of a withdrawn policy`;
  return { code: 'trial_flip', message, ...(untilMs !== undefined && { untilMs }) };
};
