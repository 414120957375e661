import { resolveDisruption } from '../../policy/disruption.ts';
import type { Gate } from './gate.ts';

/** However small its share is, a policy may always disturb so many computes at once. */
export const FEWEST_AT_ONCE = 5;

/** When to ask again for a place, in milliseconds. */
const NEXT_ASK_MS = 5_000;

/** How many computes of a policy may be disturbed at once, of those that it selects. */
export function atOnceAllowed(selected: number, share: number): number {
  return Math.max(FEWEST_AT_ONCE, Math.floor(selected * share));
}

/** Only so many computes of a policy are disturbed at once, over all daemons. What is urgent does not wait. */
export const atOnce: Gate = ({ change, nowMs, disruption, isAtOnceFull }) => {
  if (!change.disconnects || change.urgent) return undefined;
  const share = resolveDisruption(change.disruption, disruption).atOnce;
  if (!isAtOnceFull?.(change, share)) return undefined;
  const message = `as many computes of ${change.policy} as may be are being restarted`;
  return { code: 'at_once', message, untilMs: nowMs + NEXT_ASK_MS };
};
