import { isoInstant } from '../../time/units.ts';
import type { Gate } from './gate.ts';

/** Between two readings of fields that lag, in milliseconds. */
const READ_AGAIN_MS = 10_000;

/** A reading that lags is no reason to write: the missing change is already there. */
export const readingLags: Gate = ({ change: { group }, record, nowMs }) => {
  if (group === 'restart' || !record?.lagging?.[group]) return undefined;
  const { [group]: change } = record.lastChanges ?? {};
  const isOwn = change !== undefined && record.manual?.[group] === undefined;
  const since = isOwn ? `ebb's change at ${isoInstant(change.answeredAtMs)}` : 'a change that it has shown already';
  const message = `the control API still shows the values from before ${since}; it is read again`;
  return { code: 'reading_lags', message, untilMs: nowMs + READ_AGAIN_MS };
};
