import { timerMs } from '../../ports/clock.ts';

/** The reason of a signal whose time ran out, to tell it from one that somebody aborted. */
export class DeadlinePassed extends Error {
  override name = 'DeadlinePassed';
}

const expiries = new WeakMap<AbortSignal, () => void>();

/**
 * Aborts a signal of {@link underDeadline} whose time is over though its timer has not run yet: after a sleep of the process, what
 * was waited for comes first. To be called right before something is sent.
 */
export function expireIfLate(signal: AbortSignal): void {
  expiries.get(signal)?.();
}

/**
 * Runs `work` under a signal that aborts when `deadlineMs` have passed or one of `parents` aborts, whichever is first.
 * (AbortSignal.any would keep one entry for each call on a long-lived parent, and AbortSignal.timeout keeps no process alive.)
 */
export async function underDeadline<T>(
  options: { deadlineMs: number; parents: readonly AbortSignal[] },
  work: (signal: AbortSignal, remainingMs: () => number) => Promise<T>,
): Promise<T> {
  const { deadlineMs, parents } = options;
  const controller = new AbortController();
  const endsAtMs = performance.now() + deadlineMs;
  const expire = () => controller.abort(new DeadlinePassed('the deadline has passed'));
  const timer = setTimeout(expire, timerMs(deadlineMs));
  expiries.set(controller.signal, () => performance.now() >= endsAtMs && expire());
  const follow = () => controller.abort(parents.find((parent) => parent.aborted)?.reason);
  for (const parent of parents) parent.addEventListener('abort', follow, { once: true });
  if (parents.some((parent) => parent.aborted)) follow();
  try {
    return await work(controller.signal, () => endsAtMs - performance.now());
  } finally {
    clearTimeout(timer);
    for (const parent of parents) parent.removeEventListener('abort', follow);
  }
}
