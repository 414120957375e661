import { isoInstant } from '../../time/units.ts';
import type { Gate } from './gate.ts';

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
