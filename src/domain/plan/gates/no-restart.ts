/** Gates for causes that must not restart a compute: a trial's change of arm, and the end of a budget step. */

import { type ComputeSettings, hasSettings } from '../../compute/compute.ts';
import { isoInstant } from '../../time/units.ts';
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

/** The end of a budget step must not cause a restart. So the value waits for sleep, or for the next boundary, at which it may change anyway. */
export const budgetReset: Gate = ({ change, nowMs, stepEndedAtMs, nextBoundaryAfter }) => {
  const { group } = change;
  if (group === 'restart' || !change.disconnects || change.urgent || change.hard) return undefined;
  const endedAtMs = change.code === 'budget_step' ? undefined : stepEndedAtMs(group);
  if (endedAtMs === undefined) return undefined;
  const untilMs = nextBoundaryAfter(nowMs, group);
  const message = `a step of a budget ended at ${isoInstant(endedAtMs)}: waiting for sleep, or for the next boundary`;
  return { code: 'budget_reset', message, ...(untilMs !== undefined && { untilMs }) };
};
