import type { Clock } from '../../ports/clock.ts';
import { assertAscending, realAt, simulatedAt, type TimePoint } from './time-table.ts';
import { sleepUntil, startTicking, type TickErrorHandler, warnOfTickError } from './waiting.ts';

/** Where real time comes from; tests give their own. */
interface RealTime {
  /** Milliseconds since the epoch. */
  nowMs(): number;
  /** Milliseconds from an arbitrary start, never running backwards. */
  monotonicMs(): number;
}

const MACHINE: RealTime = { nowMs: () => Date.now(), monotonicMs: () => performance.now() };

/** Instants of our days have a resolution of 0.00024 ms in a double: an instant that is reached must not be floored away. */
const ROUNDING_MS = 0.0005;

export interface SimulatedClockOptions {
  /** Ascending strictly in both columns; piecewise linear between the points, real time before the first and after the last. */
  table: readonly TimePoint[];
  /** The real instant (since the epoch) at which `realMs` of the table is 0. Two processes that share it agree. Default: now. */
  startedAtMs?: number;
  realTime?: RealTime;
  onTickError?: TickErrorHandler;
}

/**
 * A clock that runs by a table of real and simulated instants. It never runs backwards, even if the machine's clock is
 * set: after its making it goes by the monotonic time. Throws a RangeError if the table doesn't ascend.
 */
export function simulatedClock({
  table,
  realTime = MACHINE,
  startedAtMs = realTime.nowMs(),
  onTickError = warnOfTickError,
}: SimulatedClockOptions): Clock {
  assertAscending(table);
  const offsetMs = realTime.nowMs() - startedAtMs - realTime.monotonicMs();
  const elapsedMs = (): number => realTime.monotonicMs() + offsetMs;
  const realDelayMs = (instantMs: number): number => Math.max(0, Math.ceil(realAt(table, instantMs) - elapsedMs()));
  return {
    now: () => Math.floor(simulatedAt(table, elapsedMs()) + ROUNDING_MS),
    realDelayMs,
    sleepUntil: (instantMs, signal) => sleepUntil(realDelayMs, instantMs, signal),
    every: (intervalMs, tick) => startTicking(intervalMs, tick, onTickError),
    monotonicMs: () => realTime.monotonicMs(),
  };
}
