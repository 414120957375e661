import { setTimeout as sleep } from 'node:timers/promises';
import { timerMs } from '../../ports/clock.ts';
import type { ApiResult, ControlApiError } from '../../ports/control-api.ts';
import type { ApiCall, Caller, SendOnce } from './api-call.ts';
import { underDeadline } from './deadline.ts';

export interface Backoff {
  /** Upper bound of the first wait, milliseconds; it doubles with each repeat. */
  firstMs: number;
  /** Upper bound of any wait, milliseconds, unless the service asks for more. */
  longestMs: number;
}

export const DEFAULT_BACKOFF: Backoff = { firstMs: 200, longestMs: 5_000 };

/**
 * Sends again what may be sent again, until it succeeds or the call's deadline would pass. Waits are full jitter, so that many
 * clients don't come back at once; the service's Retry-After is a floor that is never shortened.
 */
export function withRetries(
  send: SendOnce,
  options: { backoff: Backoff; random: () => number; closing: AbortSignal; onThrottledWait: (waitMs: number) => void },
): Caller {
  const { backoff, random, closing, onThrottledWait } = options;

  /** How long to wait before the next attempt; undefined if this result is the last. */
  function repeatAfterMs(call: ApiCall, result: ApiResult<unknown>, attempt: number): number | undefined {
    if (result.ok || !mayRepeat(call, result.error)) return undefined;
    const jitterMs = random() * Math.min(backoff.longestMs, backoff.firstMs * 2 ** attempt);
    return Math.max(jitterMs, result.error.retryAfterMs ?? 0);
  }

  async function waited(result: ApiResult<unknown>, waitMs: number, signal: AbortSignal): Promise<boolean> {
    if (!(await slept(waitMs, signal))) return false;
    if (!result.ok && result.error.code === 'throttled') onThrottledWait(waitMs);
    return true;
  }

  async function sendUntilDone(call: ApiCall, signal: AbortSignal, remainingMs: () => number) {
    let before: ApiResult<unknown> | undefined;
    for (let attempt = 0; ; attempt += 1) {
      const result = await send(call, signal);
      // A repeat that the budget held back says less than what it repeats.
      if (before !== undefined && isHeldBack(result)) return before;
      const waitMs = repeatAfterMs(call, result, attempt);
      if (waitMs === undefined || waitMs >= remainingMs() || !(await waited(result, waitMs, signal))) return result;
      before = result;
    }
  }

  return (call) => {
    const parents = call.signal === undefined ? [closing] : [closing, call.signal];
    return underDeadline({ deadlineMs: call.deadlineMs, parents }, (signal, remainingMs) =>
      sendUntilDone(call, signal, remainingMs),
    );
  };
}

/**
 * 429 and 503 say that nothing was done. So does 423, but who waits for its end may want something else afterwards, so that is the
 * caller's choice. A GET changes nothing and may always come again; a write only if it certainly did not arrive.
 */
function mayRepeat(call: ApiCall, error: ControlApiError): boolean {
  if (error.code === 'locked') return call.repeatLocked;
  if (error.code === 'throttled') return error.status === 429;
  return (error.code === 'unavailable' || error.code === 'timeout') && error.outcomeUnknown !== true;
}

/** True if the request was not sent because the budget had no room for it before the deadline. */
function isHeldBack(result: ApiResult<unknown>): boolean {
  return !result.ok && result.error.code === 'throttled' && result.error.status === undefined;
}

async function slept(ms: number, signal: AbortSignal): Promise<boolean> {
  try {
    await sleep(timerMs(ms), undefined, { signal });
    return true;
  } catch {
    return false;
  }
}
