import type { Clock } from '../../ports/clock.ts';
import { sleepUntil, startTicking, type TickErrorHandler, warnOfTickError } from './waiting.ts';

/** The machine's own time. `onTickError` hears of a tick of `every` that rejected (default: a process warning). */
export function systemClock({ onTickError = warnOfTickError }: { onTickError?: TickErrorHandler } = {}): Clock {
  const realDelayMs = (instantMs: number): number => Math.max(0, instantMs - Date.now());
  return {
    now: () => Date.now(),
    realDelayMs,
    sleepUntil: (instantMs, signal) => sleepUntil(realDelayMs, instantMs, signal),
    every: (intervalMs, tick) => startTicking(intervalMs, tick, onTickError),
    monotonicMs: () => performance.now(),
  };
}
