import { isoInstant } from '../../time/units.ts';
import type { Gate } from './gate.ts';

/**
 * The end of a budget step must not cause a restart. A size that is wanted because of it waits until the compute sleeps, or for the next
 * boundary, at which the size may change anyway.
 */
export const budgetReset: Gate = ({ change, nowMs, stepEndedAtMs, nextBoundaryAfter }) => {
  if (change.group !== 'size' || !change.disconnects || change.urgent || change.hard) return undefined;
  if (change.code === 'budget_step' || stepEndedAtMs === undefined) return undefined;
  const untilMs = nextBoundaryAfter(nowMs, 'size');
  const message = `a step of a budget ended at ${isoInstant(stepEndedAtMs)}: waiting for sleep, or for the next boundary`;
  return { code: 'budget_reset', message, ...(untilMs !== undefined && { untilMs }) };
};
