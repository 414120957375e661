/** Node's timers fire at once if the delay is longer. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** A delay that a timer accepts, milliseconds. */
export function timerMs(ms: number): number {
  return Math.min(Math.max(0, ms), LONGEST_TIMER_MS);
}

/**
 * The one source of "now". Instants are milliseconds since the epoch. Policies are evaluated in this time. In the demo and in scenario tests
 * it is simulated, and runs faster than real time. Leases, timeouts and rate budgets use real time.
 */
export interface Clock {
  now(): number;
  /** Real milliseconds until `instantMs`; 0 if it has passed. */
  realDelayMs(instantMs: number): number;
  /** Resolves at `instantMs`, at once if it has passed; rejects with the signal's reason when aborted. */
  sleepUntil(instantMs: number, signal: AbortSignal): Promise<void>;
  /** Calls `tick` every `intervalMs` of real time until closed; a tick that is still running is not started again. */
  every(intervalMs: number, tick: () => Promise<void>): { close(): Promise<void> };
  /** Real milliseconds from an arbitrary start, never decreasing: for durations. */
  monotonicMs(): number;
  /**
   * Resolves after this many real milliseconds; rejects with the signal's reason when aborted. With `ref: false` the wait doesn't
   * keep the process alive.
   */
  wait(ms: number, signal?: AbortSignal, options?: { ref?: boolean }): Promise<void>;
  /** A signal that aborts with a `TimeoutError` after this many real milliseconds. */
  timeout(ms: number): AbortSignal;
  /** Lets the other work of the process run first. */
  nextTurn(): Promise<void>;
}

/** Makes unique ids, of requests, holds, lease holders. A port, so that a simulation can draw them from its seed. */
export type NewId = () => string;
