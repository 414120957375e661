import type { Size } from '../compute/compute.ts';
import { formatSize, formatSuspendTimeout } from '../compute/compute-units.ts';

/** The message for people about a hold that is not in the store, while no daemon answers. */
export const LOST_HOLD =
  'A hold that the store has just lost is written back by a running daemon within 2 s: try again then';

/** A person's temporary override for one compute: it sets fields, or keeps the compute as it is. */
export interface Hold {
  id: string;
  projectId: string;
  computeId: string;
  /** The person who set it. */
  owner: string;
  reason: string;
  /** Milliseconds since the epoch. */
  createdAtMs: number;
  /** The hold is inactive from this instant on. */
  expiresAtMs: number;
  size?: Size;
  /** A canonical timeout: −1 for never, else 60..604800 seconds. */
  suspendTimeoutSeconds?: number;
  /** True if nothing is written to the compute. */
  freeze?: true;
  /** The teams to which the owner's token is limited, and whose quota the hold uses; absent for an unlimited token. */
  teams?: readonly string[];
}

/** Describes what a hold does, as policies write it. */
export function describeHold({
  size,
  suspendTimeoutSeconds: timeout,
  freeze,
}: Pick<Hold, 'size' | 'suspendTimeoutSeconds' | 'freeze'>): string {
  return [
    ...(size ? [`size ${formatSize(size)} CU`] : []),
    ...(timeout === undefined ? [] : [`suspend_after ${formatSuspendTimeout(timeout)}`]),
    ...(freeze ? ['as it is'] : []),
  ].join(', ');
}

/** The active holds of a compute at an instant, newest first; of two that were set at the same instant, the later in the list is newer. */
export function holdsAt(holds: readonly Hold[], compute: { computeId: string }, instantMs: number): Hold[] {
  if (holds.length === 0) return [];
  return holds
    .filter(({ computeId }) => computeId === compute.computeId)
    .filter(({ createdAtMs, expiresAtMs }) => createdAtMs <= instantMs && instantMs < expiresAtMs)
    .toReversed()
    .toSorted((a, b) => b.createdAtMs - a.createdAtMs);
}

/**
 * Limits creation times to now: a hold is active as soon as it is read, although the clock by which it was set may be ahead. Sorts the holds
 * first, so that {@link holdsAt} still knows which of two holds with the same time is newer.
 */
export function setByNow(holds: readonly Hold[], nowMs: number): readonly Hold[] {
  if (holds.every(({ createdAtMs }) => createdAtMs <= nowMs)) return holds;
  return holds
    .toSorted((a, b) => a.createdAtMs - b.createdAtMs)
    .map((hold) => ({ ...hold, createdAtMs: Math.min(hold.createdAtMs, nowMs) }));
}
