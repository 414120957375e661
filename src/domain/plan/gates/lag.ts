import { isoInstant } from '../../time/units.ts';
import type { Gate } from './gate.ts';

/** The interval between readings of lagging fields, in milliseconds. */
const READ_AGAIN_MS = 10_000;

/** Holds changes of lagging fields: the compute already has a newer value than the reading shows. */
export const readingLags: Gate = ({ change: { group }, record, nowMs }) => {
  if (group === 'restart' || !record?.lagging?.[group]) return undefined;
  const { [group]: change } = record.lastChanges ?? {};
  const isByEbb = change !== undefined && record.manual?.[group] === undefined;
  const since = isByEbb ? `ebb's change at ${isoInstant(change.answeredAtMs)}` : 'a change that it has shown already';
  const message = `the control API still shows the values from before ${since}; it is read again`;
  return { code: 'reading_lags', message, untilMs: nowMs + READ_AGAIN_MS };
};
