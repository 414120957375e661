import type { Clock } from '../../ports/clock.ts';
import { REAL_WAITS, sleepUntil, startTicking, type TickErrorHandler, warnOfTickError } from './system-clock.ts';

/** The machine's clock; tests replace it. */
interface RealTime {
  /** Milliseconds since the epoch. */
  nowMs(): number;
  monotonicMs(): number;
}

const MACHINE: RealTime = { nowMs: () => Date.now(), monotonicMs: () => performance.now() };

/** Added before rounding down. Instants in doubles are off by up to 0.00024 ms, so an instant that was reached could show a millisecond less. */
const ROUNDING_MS = 0.0005;

interface SimulatedClockOptions {
  /** Ascends strictly in both columns. Time is linear between the points, and as fast as real time before the first and after the last. */
  table: readonly TimePoint[];
  /** The real instant of `realMs` 0 in the table, milliseconds since the epoch. Processes with the same value have the same time. Default: now. */
  startedAtMs?: number;
  realTime?: RealTime;
  onTickError?: TickErrorHandler;
}

/**
 * A clock that maps real to simulated time by a table. It is monotonic, even if the machine's clock is set. Throws a RangeError if the table
 * doesn't ascend.
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
  const now = (): number => Math.floor(simulatedAt(table, elapsedMs()) + ROUNDING_MS);
  const realDelayMs = (instantMs: number): number =>
    now() >= instantMs ? 0 : Math.max(1, Math.ceil(realAt(table, instantMs) - elapsedMs()));
  return {
    now,
    realDelayMs,
    sleepUntil: (instantMs, signal) => sleepUntil(realDelayMs, instantMs, signal),
    every: (intervalMs, tick) => startTicking(intervalMs, tick, onTickError),
    monotonicMs: () => realTime.monotonicMs(),
    ...REAL_WAITS,
  };
}

/** The same moment in both times: `realMs` after the start, `simulatedMs` since the epoch. */
export interface TimePoint {
  realMs: number;
  simulatedMs: number;
}

/**
 * Throws a RangeError unless the table has a point and both columns ascend strictly. Only then is each simulated instant
 * reached exactly once, so that real delays can be computed.
 */
export function assertAscending(table: readonly TimePoint[]): void {
  if (table.length === 0) throw new RangeError('a time table needs at least one point');
  for (const [index, point] of table.entries()) {
    const before = table[index - 1];
    if (before === undefined) continue;
    if (point.realMs <= before.realMs || point.simulatedMs <= before.simulatedMs) {
      throw new RangeError(`point ${index} of the time table must be later than the one before it, in both columns`);
    }
  }
}

/** The simulated instant at `realMs` after the start. Outside the table time runs as fast as real time. */
export function simulatedAt(table: readonly TimePoint[], realMs: number): number {
  return interpolate(table, 'realMs', 'simulatedMs', realMs);
}

/** Real milliseconds from the start until the simulated instant; the inverse of {@link simulatedAt}. */
export function realAt(table: readonly TimePoint[], simulatedMs: number): number {
  return interpolate(table, 'simulatedMs', 'realMs', simulatedMs);
}

function interpolate(table: readonly TimePoint[], from: keyof TimePoint, to: keyof TimePoint, value: number): number {
  const index = table.findLastIndex((point) => point[from] <= value);
  const low = table[Math.max(index, 0)];
  if (low === undefined) throw new RangeError('a time table needs at least one point');
  const high = index < 0 ? undefined : table[index + 1];
  if (high === undefined) return low[to] + (value - low[from]);
  return low[to] + ((value - low[from]) * (high[to] - low[to])) / (high[from] - low[from]);
}
