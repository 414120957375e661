import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises';
import { type Clock, timerMs } from '../../ports/clock.ts';

/** The machine's time. `onTickError` is called if a tick of `every` rejects; the default emits a process warning. */
export function systemClock({ onTickError = warnOfTickError }: { onTickError?: TickErrorHandler } = {}): Clock {
  const realDelayMs = (instantMs: number): number => Math.max(0, instantMs - Date.now());
  return {
    now: () => Date.now(),
    realDelayMs,
    sleepUntil: (instantMs, signal) => sleepUntil(realDelayMs, instantMs, signal),
    every: (intervalMs, tick) => startTicking(intervalMs, tick, onTickError),
    monotonicMs: () => performance.now(),
    ...REAL_WAITS,
  };
}

export const REAL_WAITS: Pick<Clock, 'wait' | 'timeout' | 'nextTurn'> = {
  wait: nap,
  timeout: (ms) => AbortSignal.timeout(timerMs(ms)),
  nextTurn: () => nextTurn(),
};

/** Longer waits are split into timers of this length, since meanwhile the machine's clock may be set, or a laptop may sleep. */
const LONGEST_NAP_MS = 5_000;

/** Waits until `realDelayMs(instantMs)` is 0; rejects with the signal's reason when aborted. */
export async function sleepUntil(
  realDelayMs: (instantMs: number) => number,
  instantMs: number,
  signal: AbortSignal,
): Promise<void> {
  signal.throwIfAborted();
  for (let remainingMs = realDelayMs(instantMs); remainingMs > 0; remainingMs = realDelayMs(instantMs)) {
    await nap(Math.min(remainingMs, LONGEST_NAP_MS), signal);
  }
}

async function nap(ms: number, signal?: AbortSignal, options?: { ref?: boolean }): Promise<void> {
  try {
    await delay(timerMs(ms), undefined, { ...options, ...(signal && { signal }) });
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  }
}

export type TickErrorHandler = (error: unknown) => void;

export function warnOfTickError(error: unknown): void {
  process.emitWarning(error instanceof Error ? error : String(error), 'TickError');
}

/** Calls `tick` every `intervalMs` of real time. Invariant: at most one tick runs; meanwhile no other begins. `close` waits for a running tick. */
export function startTicking(
  intervalMs: number,
  tick: () => Promise<void>,
  onTickError: TickErrorHandler,
): ReturnType<Clock['every']> {
  let running: Promise<void> | undefined;
  const timer = setInterval(() => {
    if (running !== undefined) return;
    running = runTick(tick, onTickError).finally(() => {
      running = undefined;
    });
  }, timerMs(intervalMs));
  return {
    async close() {
      clearInterval(timer);
      await running;
    },
  };
}

async function runTick(tick: () => Promise<void>, onTickError: TickErrorHandler): Promise<void> {
  try {
    await tick();
  } catch (error) {
    onTickError(error);
  }
}
