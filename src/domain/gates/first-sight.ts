import type { Gate } from './gate.ts';

/**
 * A compute that an enforcing ebb has just met keeps its size while clients are connected, until it sleeps or until the next
 * boundary that concerns it: whoever starts ebb at noon disconnects nobody.
 */
export const firstSight: Gate = ({ change, record, nowMs, nextBoundaryAfter }) => {
  if (!change.disconnects || record?.lastApplied.maxCu !== undefined) return undefined;
  const untilMs = nextBoundaryAfter(record?.enforcedSinceMs ?? nowMs);
  if (untilMs !== undefined && untilMs <= nowMs) return undefined;
  const message = 'ebb has just met this active compute: waiting for sleep or for the next boundary';
  return { code: 'first_sight', message, ...(untilMs !== undefined && { untilMs }) };
};
