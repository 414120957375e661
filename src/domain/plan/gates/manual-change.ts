import { isoInstant } from '../../time/instants.ts';
import { describeManualChange, respectedUntil } from '../manual-changes.ts';
import type { Gate } from './gate.ts';

/** What a person has set stays for a while. Only hard limits, and connections that run out, go before it. */
export const manualChange: Gate = ({ change, record, nowMs, nextBoundaryAfter, manualChanges }) => {
  if (change.group === 'restart' || change.hard || change.urgent) return undefined;
  const mark = record?.manual?.[change.group];
  if (!mark || mark.seenAtMs <= (change.askedAtMs ?? Number.NEGATIVE_INFINITY)) return undefined;
  const rule = change.manualChanges ?? manualChanges ?? { kind: 'respect' };
  const { group } = change;
  const untilMs = respectedUntil(mark, rule, (afterMs) => nextBoundaryAfter(afterMs, group));
  if (nowMs >= untilMs) return undefined;
  const message = `${describeManualChange(group, record.lastApplied, mark.fields)}; respected until ${isoInstant(untilMs)}`;
  return { code: 'manual_change', message, untilMs };
};
