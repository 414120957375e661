import { MINUTE_MS, SECOND_MS } from '../../domain/time/units.ts';
import type { Clock } from '../../ports/clock.ts';

/** A digest that is already late waits until nothing was added to it for QUIET_MS, but at most for MAX_WAIT_MS. Real milliseconds. */
const QUIET_MS = 20 * SECOND_MS;
const MAX_WAIT_MS = MINUTE_MS;

/** An announcement that is late by less than this counts as in time, since rounds may be late; in milliseconds. */
const ON_TIME_MS = 10 * SECOND_MS;

/** A restart that has not been announced. */
interface UntoldRestart {
  computeId: string;
  /** The time until it comes, in milliseconds of the daemon's clock. */
  leftMs: number;
  /** `leftMs` in real milliseconds. */
  realLeftMs: number;
  /** How long before the restart people should be told, in milliseconds. */
  leadMs: number;
}

/** True if a digest need not wait for more restarts. */
export type IsGathered = (key: string, restarts: readonly UntoldRestart[]) => boolean;

/**
 * Gathers restarts that are announced late anyway: an approval, a boundary or a start of a daemon makes them known one by one, and people
 * should get one message. An announcement in time does not wait, and none waits for more than half of the time that is left.
 */
export function createGathering({ monotonicMs }: Pick<Clock, 'monotonicMs'>): IsGathered {
  const gathered = new Map<string, Gathered>();
  return (key, restarts) => {
    const nowMs = monotonicMs();
    for (const [other, { seenAtMs }] of gathered) if (nowMs - seenAtMs > MAX_WAIT_MS) gathered.delete(other);
    const current = gather(gathered.get(key), new Set(restarts.map(({ computeId }) => computeId)), nowMs);
    gathered.set(key, current);
    const isInTime = restarts.every(({ leftMs, leadMs }) => leftMs >= leadMs - ON_TIME_MS);
    const waitedMs = nowMs - current.sinceMs;
    const isNear = restarts.some(({ realLeftMs }) => realLeftMs <= waitedMs + ON_TIME_MS);
    return isInTime || isNear || nowMs - current.addedAtMs >= QUIET_MS || waitedMs >= MAX_WAIT_MS;
  };
}

/** The restarts of a digest that waits. Times are monotonic milliseconds. */
interface Gathered {
  ids: ReadonlySet<string>;
  sinceMs: number;
  addedAtMs: number;
  seenAtMs: number;
}

function gather(before: Gathered | undefined, ids: ReadonlySet<string>, nowMs: number): Gathered {
  const added = [...ids].filter((id) => !before?.ids.has(id));
  // If none of the gathered restarts is left, they have been told, or do not come: gathering begins anew.
  if (!before || added.length === ids.size) return { ids, sinceMs: nowMs, addedAtMs: nowMs, seenAtMs: nowMs };
  return { ...before, ids, addedAtMs: added.length > 0 ? nowMs : before.addedAtMs, seenAtMs: nowMs };
}
