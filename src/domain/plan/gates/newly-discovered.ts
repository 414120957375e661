import type { Gate } from './gate.ts';

/** Where no boundary is in sight, what was decided is applied after so long. */
const MOST_WAITED_MS = 24 * 60 * 60_000;

/**
 * A compute that an enforcing ebb has just met keeps its size while clients are connected, until it sleeps or until the next
 * boundary that concerns it: whoever starts ebb at noon disconnects nobody. Only connections that run out do not wait.
 */
export const newlyDiscovered: Gate = ({ change, record, nowMs, nextBoundaryAfter }) => {
  if (!change.disconnects || change.urgent || record?.lastApplied.maxCu !== undefined) return undefined;
  const metAtMs = record?.enforcedSinceMs ?? nowMs;
  const untilMs = nextBoundaryAfter(metAtMs) ?? metAtMs + MOST_WAITED_MS;
  if (untilMs <= nowMs) return undefined;
  const message = 'ebb has just met this active compute: waiting for sleep or for the next boundary';
  return { code: 'newly_discovered', message, untilMs };
};
