import type { Clock } from '../../ports/clock.ts';

/** The abort reason of a signal whose deadline has passed. */
export class DeadlinePassed extends Error {
  override name = 'DeadlinePassed';
}

const expiries = new WeakMap<AbortSignal, () => void>();

/** Aborts a signal of {@link underDeadline} if its deadline has passed. Called before a send, since timers are late after the machine slept. */
export function expireIfLate(signal: AbortSignal): void {
  expiries.get(signal)?.();
}

const ENDED = 'the work has ended';

/**
 * Runs `work` under a signal that aborts when `deadlineMs` have passed or one of `parents` aborts, whichever is first. AbortSignal.any would
 * leave an entry on a long-lived parent for each call. The clock's `timeout` would not keep the process alive.
 */
export async function underDeadline<T>(
  options: { deadlineMs: number; parents: readonly AbortSignal[]; clock: Pick<Clock, 'monotonicMs' | 'wait'> },
  work: (signal: AbortSignal, remainingMs: () => number) => Promise<T>,
): Promise<T> {
  const { deadlineMs, parents, clock } = options;
  const controller = new AbortController();
  const endMs = clock.monotonicMs() + deadlineMs;
  const expire = () => controller.abort(new DeadlinePassed('the deadline has passed'));
  const ended = new AbortController();
  clock.wait(deadlineMs, ended.signal).then(expire, () => {});
  expiries.set(controller.signal, () => clock.monotonicMs() >= endMs && expire());
  const follow = () => controller.abort(parents.find((parent) => parent.aborted)?.reason);
  for (const parent of parents) parent.addEventListener('abort', follow, { once: true });
  if (parents.some((parent) => parent.aborted)) follow();
  try {
    return await work(controller.signal, () => endMs - clock.monotonicMs());
  } finally {
    // Without a reason, `abort` would create an error with a stack for each call.
    ended.abort(ENDED);
    for (const parent of parents) parent.removeEventListener('abort', follow);
  }
}

/** The message of an aborted signal's reason. */
export function whyAborted(signal: AbortSignal): string {
  return signal.reason instanceof Error ? signal.reason.message : 'aborted';
}
