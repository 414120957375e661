import type { Clock } from '../../ports/clock.ts';
import { type ApiResult, type ControlApiError, isUnavailable } from '../../ports/control-api.ts';

/** How long a command waits for an API that is down. Absent for the daemon and `ebb verify`. */
export interface Patience {
  /** Milliseconds. If for this time each result was `noConnection`, no call is tried again. */
  unreachedMs: number;
  /**
   * Called once for each client, before a repeat of a call that found the API unavailable several times or for some seconds. `untilMs`: the
   * latest end of that call, milliseconds since the epoch.
   */
  onWait(error: ControlApiError, untilMs: number): void;
}

/** `onWait` is called after this many failures of a call, or once it has failed for this long: a short outage is not reported. */
const FAILURES = 3;
const QUIET_MS = 3_000;

interface NextTry {
  failures: number;
  /** The time since the call's first failure. */
  failingMs: number;
  /** The time until the call's next try; undefined if there is none. */
  waitMs: number | undefined;
  /** The time until the call's deadline. */
  remainingMs: number;
}

/**
 * Decides whether failed calls of one client are tried again. With `patience`, repeats stop after `unreachedMs` in which each result was
 * `noConnection` (refused, or no way to the address). Any other result allows repeats again.
 */
export function createRepeatLimit(clock: Pick<Clock, 'now' | 'monotonicMs'>, patience: Patience | undefined) {
  let unreachedSinceMs: number | undefined;
  let isReported = false;

  function report(error: ControlApiError, { failures, failingMs }: NextTry, leftMs: number): void {
    if (isReported || !isUnavailable(error) || (failures < FAILURES && failingMs < QUIET_MS)) return;
    isReported = true;
    patience?.onWait(error, clock.now() + leftMs);
  }

  return {
    /** `next.waitMs`, or undefined if this result is the last of its call. */
    nextWaitMs(result: ApiResult<unknown>, next: NextTry): number | undefined {
      const nowMs = clock.monotonicMs();
      if (result.ok || !result.error.noConnection) unreachedSinceMs = undefined;
      else unreachedSinceMs ??= nowMs;
      const endsMs =
        (unreachedSinceMs ?? Number.POSITIVE_INFINITY) + (patience?.unreachedMs ?? Number.POSITIVE_INFINITY);
      const leftMs = Math.min(next.remainingMs, endsMs - nowMs);
      if (result.ok || next.waitMs === undefined || next.waitMs >= leftMs) return undefined;
      report(result.error, next, leftMs);
      return next.waitMs;
    },
  };
}
