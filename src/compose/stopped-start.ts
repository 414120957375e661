import { setMaxListeners } from 'node:events';

/** Nobody stops. */
export const NEVER = new AbortController().signal;
/** What comes of a start that somebody stopped. */
export const STOPPED = { ok: false, problem: 'stopped while it started' } as const;

/** Who is told to stop gives up what it waits for at once; what can't be given up is not waited for longer, in real milliseconds. */
const GIVE_UP_MS = 1_000;

/** What comes of the work, or, a little after the signal aborts, that it was stopped. */
export async function orStopped<T>(work: Promise<T>, signal: AbortSignal): Promise<T | typeof STOPPED> {
  // Every read of a start listens to it, and takes its listener away when it ends.
  setMaxListeners(0, signal);
  let timer: NodeJS.Timeout | undefined;
  let onAbort = () => {};
  const stopped = new Promise<typeof STOPPED>((resolve) => {
    onAbort = () => {
      timer = setTimeout(() => resolve(STOPPED), GIVE_UP_MS);
    };
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) onAbort();
  });
  try {
    return await Promise.race([work, stopped]);
  } finally {
    signal.removeEventListener('abort', onAbort);
    clearTimeout(timer);
  }
}
