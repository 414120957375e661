import type { Size } from '../compute/compute.ts';

/** A person's word on one compute, for a while: it replaces the fields that it names, or keeps the compute as it is. */
export interface Hold {
  id: string;
  projectId: string;
  computeId: string;
  /** The person who set it. */
  owner: string;
  reason: string;
  /** Milliseconds since the epoch. */
  createdAtMs: number;
  /** It no longer counts from this instant on. */
  expiresAtMs: number;
  size?: Size;
  /** Canonical seconds: −1 never, else 60..604800. */
  suspendTimeoutSeconds?: number;
  /** Nothing is written to the compute. */
  freeze?: true;
  /** Of whose quota it is: the teams to which the token of its owner is limited; absent for a token that is not. */
  teams?: readonly string[];
}

/** The holds of one compute that count at an instant, newest first: the newest that names a field decides it. */
export function holdsAt(holds: readonly Hold[], compute: { computeId: string }, instantMs: number): Hold[] {
  if (holds.length === 0) return [];
  return holds
    .filter((hold) => hold.computeId === compute.computeId && isActive(hold, instantMs))
    .toSorted((a, b) => b.createdAtMs - a.createdAtMs);
}

function isActive({ createdAtMs, expiresAtMs }: Hold, instantMs: number): boolean {
  return createdAtMs <= instantMs && instantMs < expiresAtMs;
}
