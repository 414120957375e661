import type { AwakeHistory, AwakeInterval } from '../awake/intervals.ts';
import type { Span } from '../time/span.ts';
import { DAY_MS } from '../time/units.ts';

/** An interval shorter than the timeout by more than this ended under another timeout; instants are whole seconds. */
const SLACK_MS = 5_000;

/** The part of a history in which one timeout applied. */
export interface Visits extends Span {
  timeoutMs: number;
  /** The known time, in milliseconds. */
  knownMs: number;
  intervals: readonly AwakeInterval[];
  /** The starts of unknown spans; a replay never extends an interval beyond one. */
  unknownFromMs: readonly number[];
}

/** The visits since the last interval that was shorter than the timeout and so ended under another one. Undefined for a timeout of never. */
export function visitsUnder(history: AwakeHistory, timeoutSeconds: number): Visits | undefined {
  if (timeoutSeconds <= 0) return undefined;
  const timeoutMs = 1000 * timeoutSeconds;
  const other = history.intervals.findLast(
    ({ start, end, startMs, endMs }) =>
      end === 'timeout' && start !== 'unknown' && endMs - startMs < timeoutMs - SLACK_MS,
  );
  const fromMs = Math.max(other?.endMs ?? history.fromMs, history.fromMs);
  const unknown = history.unknown.filter(({ toMs }) => toMs > fromMs);
  const unknownMs = unknown.reduce((sum, gap) => sum + gap.toMs - Math.max(gap.fromMs, fromMs), 0);
  return {
    timeoutMs,
    fromMs,
    toMs: history.toMs,
    knownMs: history.toMs - fromMs - unknownMs,
    intervals: history.intervals.filter(({ startMs }) => startMs >= fromMs),
    unknownFromMs: unknown.map((gap) => gap.fromMs),
  };
}

/** The outcome of a timeout: milliseconds awake, and starts for clients; in total and by day (UTC). */
export interface TimeoutOutcome {
  awakeMs: number;
  starts: number;
  /** {@link awakeMs} and {@link starts} of each day since the first. */
  days: { awakeMs: number; starts: number }[];
}

/**
 * Replays the visits under another timeout: milliseconds, or a function from the last activity to the suspend after it if the timeout changes
 * with time. Assumes that clients were last active one timeout before each suspend, and would come at the same times. Exact for the present
 * timeout and longer ones, if nothing runs in the compute by itself.
 */
export function replay(
  { intervals, timeoutMs, fromMs, toMs, unknownFromMs }: Visits,
  timeout: number | ((lastActiveMs: number) => number),
): TimeoutOutcome {
  const suspendAt = typeof timeout === 'number' ? (lastMs: number) => lastMs + timeout : timeout;
  const firstDay = Math.floor(fromMs / DAY_MS);
  const dayCount = Math.max(1, Math.ceil(toMs / DAY_MS) - firstDay);
  const days = Array.from({ length: dayCount }, () => ({ awakeMs: 0, starts: 0 }));
  const outcome: TimeoutOutcome = { awakeMs: 0, starts: 0, days };
  let awakeUntilMs = Number.NEGATIVE_INFINITY;
  let unknownIndex = 0;
  for (const { startMs, endMs, start, end } of intervals) {
    while (unknownIndex < unknownFromMs.length && (unknownFromMs[unknownIndex] ?? 0) <= startMs) unknownIndex += 1;
    const suspendMs = end === 'timeout' ? suspendAt(endMs - timeoutMs) : endMs;
    const untilMs = Math.min(suspendMs, toMs, unknownFromMs[unknownIndex] ?? toMs);
    const fromHereMs = Math.max(startMs, awakeUntilMs);
    const awakeMs = Math.max(0, untilMs - fromHereMs);
    const starts = awakeUntilMs < startMs && start === 'client' ? 1 : 0;
    const day = days[Math.floor(startMs / DAY_MS) - firstDay];
    if (day) {
      day.awakeMs += awakeMs;
      day.starts += starts;
    }
    outcome.awakeMs += awakeMs;
    outcome.starts += starts;
    awakeUntilMs = Math.max(awakeUntilMs, untilMs);
  }
  return outcome;
}

/** The gaps from the last activity before a suspend to the next start by a client, in milliseconds. */
export function gapsOf({ intervals, timeoutMs }: Visits): number[] {
  const gaps: number[] = [];
  for (const [index, { startMs, start }] of intervals.entries()) {
    const before = intervals[index - 1];
    if (start === 'client' && before?.end === 'timeout') gaps.push(startMs - before.endMs + timeoutMs);
  }
  return gaps;
}

/** Exceeded by one in a thousand samples of an exponential distribution (Stephens 1974, estimated mean, extended tail). */
const CRITICAL_VALUE = 1.56;
/** Shorter pauses are missing in the data: a start this soon after a suspend counts as a restart. */
const SOONEST_MS = 3_000;
/** Fewer gaps than this are taken for memoryless. */
const MIN_GAPS_TO_TEST = 5;
/** The rounding of instants, which are whole seconds. */
const ROUNDED_MS = 1_000;

/**
 * True if visits seem memoryless: the time since the last one says nothing about the next, so no timeout is better than another. Tests the excess
 * of gaps over the timeout for an exponential distribution (Kolmogorov-Smirnov). Visits are not memoryless if most gaps end right after the
 * timeout: memoryless ones would come every few seconds, and the timeout would never pass.
 */
export function areMemoryless(excessMs: readonly number[]): boolean {
  if (excessMs.filter((ms) => ms < SOONEST_MS).length > excessMs.length / 2) return false;
  const sorted = new Float64Array(excessMs.filter((ms) => ms >= SOONEST_MS)).sort();
  const count = sorted.length;
  if (count < MIN_GAPS_TO_TEST) return true;
  const mean = sorted.reduce((sum, ms) => sum + ms - SOONEST_MS, 0) / count;
  const expected = (ms: number) => 1 - Math.exp(-Math.max(0, ms - SOONEST_MS) / mean);
  const distance = sorted.reduce((most, ms, index) => {
    const [low, high] = [expected(ms - ROUNDED_MS), expected(ms + ROUNDED_MS)];
    return Math.max(most, low - index / count, (index + 1) / count - high);
  }, 0);
  const root = Math.sqrt(count);
  return (distance - 0.2 / count) * (root + 0.26 + 0.5 / root) < CRITICAL_VALUE;
}
