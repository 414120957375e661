import type { Size } from '../compute/compute.ts';

/** A person's temporary override for one compute: it sets the named fields, or keeps the compute as it is. */
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

/**
 * The active holds of a compute at an instant, newest first. The newest that sets a field decides it; of two that were set at the same
 * instant, the later in the list is the newer.
 */
export function holdsAt(holds: readonly Hold[], compute: { computeId: string }, instantMs: number): Hold[] {
  if (holds.length === 0) return [];
  return holds
    .filter((hold) => hold.computeId === compute.computeId && isActive(hold, instantMs))
    .toReversed()
    .toSorted((a, b) => b.createdAtMs - a.createdAtMs);
}

function isActive({ createdAtMs, expiresAtMs }: Hold, instantMs: number): boolean {
  return createdAtMs <= instantMs && instantMs < expiresAtMs;
}

/**
 * The holds that are known at an instant, oldest first, each set by then: a hold is active as soon as it is known, like a freeze, although
 * the clock by which it was set may be ahead.
 */
export function setByNow(holds: readonly Hold[], nowMs: number): readonly Hold[] {
  if (holds.every(({ createdAtMs }) => createdAtMs <= nowMs)) return holds;
  return holds
    .toSorted((a, b) => a.createdAtMs - b.createdAtMs)
    .map((hold) => ({ ...hold, createdAtMs: Math.min(hold.createdAtMs, nowMs) }));
}
