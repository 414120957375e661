import type { Compute } from '../compute/compute.ts';
import { maySleep } from '../compute/compute-units.ts';
import type { Recording } from './recording.ts';

/** A compute that lives as a recording says: it wakes for its clients, and sleeps when there have been none for its timeout. */
export interface SimulatedCompute {
  /** Changed in place: policies remember by identity which computes they select. */
  readonly compute: Compute;
  /** So many clients want to be connected from this instant on. Milliseconds since the epoch. */
  countConnections(connections: number, atMs: number): void;
  /** Brings its state up to an instant. */
  live(instantMs: number): void;
  /** The clients that want to be connected; undefined while nothing is known of them. */
  demandAt(instantMs: number): number | undefined;
  /** The next instant strictly after at which it falls asleep, or from which nothing is known of its clients. */
  nextChangeAfter(instantMs: number): number;
}

/** `validForMs` is how long a count says something. */
export function simulateCompute({ compute: seen }: Recording, validForMs: number): SimulatedCompute {
  const { startedAtMs: _started, pendingState: _pending, ...known } = seen;
  // It was there when it was counted, however young it is now.
  const compute: Compute = { ...known, state: 'active', createdAtMs: 0 };
  let lastCount = { connections: 0, atMs: Number.NEGATIVE_INFINITY };
  let quietSinceMs = Number.POSITIVE_INFINITY;

  function sleepsAtMs(): number {
    return maySleep(compute) ? quietSinceMs + compute.suspendTimeoutSeconds * 1000 : Number.POSITIVE_INFINITY;
  }

  return {
    compute,
    countConnections(connections, atMs) {
      lastCount = { connections, atMs };
      quietSinceMs = connections > 0 ? Number.POSITIVE_INFINITY : Math.min(quietSinceMs, atMs);
      if (connections > 0 && compute.state === 'idle') Object.assign(compute, { state: 'active', startedAtMs: atMs });
    },
    live(instantMs) {
      if (instantMs >= sleepsAtMs()) compute.state = 'idle';
    },
    demandAt(instantMs) {
      const isKnown = compute.state === 'idle' || instantMs < lastCount.atMs + validForMs;
      return isKnown ? lastCount.connections : undefined;
    },
    nextChangeAfter(instantMs) {
      if (compute.state === 'idle') return Number.POSITIVE_INFINITY;
      return Math.min(...[sleepsAtMs(), lastCount.atMs + validForMs].filter((ms) => ms > instantMs));
    },
  };
}
