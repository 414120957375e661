import type { AwakeHistory, AwakeInterval } from '../awake/intervals.ts';
import { DAY_MS } from '../time/units.ts';

/** Whole seconds are known; a finished interval that is shorter than the timeout by more was under another timeout. */
const SLACK_MS = 5_000;

/** The part of a history in which one timeout was set. */
export interface Visits {
  timeoutMs: number;
  fromMs: number;
  toMs: number;
  /** The known part, milliseconds. */
  knownMs: number;
  intervals: readonly AwakeInterval[];
  /** Starts of stretches of which nothing is known: no replay goes on beyond one. */
  unknownFromMs: readonly number[];
}

/** As far back as no finished interval is shorter than the present timeout. A compute that never suspends has none. */
export function visitsUnder(history: AwakeHistory, timeoutSeconds: number): Visits | undefined {
  if (timeoutSeconds <= 0) return undefined;
  const timeoutMs = 1000 * timeoutSeconds;
  const other = history.intervals.findLast(
    ({ start, end, startMs, endMs }) =>
      end === 'timeout' && start !== 'unknown' && endMs - startMs < timeoutMs - SLACK_MS,
  );
  const fromMs = Math.max(other?.endMs ?? history.fromMs, history.fromMs);
  const unknown = history.unknown.filter(({ toMs }) => toMs > fromMs);
  const unknownMs = unknown.reduce((sum, one) => sum + one.toMs - Math.max(one.fromMs, fromMs), 0);
  return {
    ...{ timeoutMs, fromMs, toMs: history.toMs, knownMs: history.toMs - fromMs - unknownMs },
    intervals: history.intervals.filter(({ startMs }) => startMs >= fromMs),
    unknownFromMs: unknown.map((one) => one.fromMs),
  };
}

/** The result of a timeout: milliseconds awake and starts for clients, also by the day (UTC) on which they began. */
export interface Outcome {
  awakeMs: number;
  starts: number;
  /** By the number of days since the first: the additions to {@link awakeMs} and {@link starts}. */
  days: { awakeMs: number; starts: number }[];
}

/**
 * Replays the visits under the present timeout or a longer one. Exact if nothing runs by itself while the compute is awake: clients were
 * last active one present timeout before the suspend, and come again when they came.
 */
export function replay({ intervals, timeoutMs, fromMs, toMs, unknownFromMs }: Visits, longerMs: number): Outcome {
  const firstDay = Math.floor(fromMs / DAY_MS);
  const days = Array.from({ length: Math.max(1, Math.ceil(toMs / DAY_MS) - firstDay) }, () => ({
    awakeMs: 0,
    starts: 0,
  }));
  const outcome: Outcome = { awakeMs: 0, starts: 0, days };
  let awakeUntilMs = Number.NEGATIVE_INFINITY;
  let unknown = 0;
  for (const { startMs, endMs, start, end } of intervals) {
    while (unknown < unknownFromMs.length && (unknownFromMs[unknown] ?? 0) <= startMs) unknown += 1;
    const longer = end === 'timeout' ? endMs - timeoutMs + longerMs : endMs;
    const untilMs = Math.min(longer, toMs, unknownFromMs[unknown] ?? toMs);
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

/** From the last activity of a client to the next start by a client, milliseconds: those gaps that the timeout ended. */
export function gapsOf({ intervals, timeoutMs }: Visits): number[] {
  const gaps: number[] = [];
  for (const [index, { startMs, start }] of intervals.entries()) {
    const before = intervals[index - 1];
    if (start === 'client' && before?.end === 'timeout') gaps.push(startMs - before.endMs + timeoutMs);
  }
  return gaps;
}

/** One of a thousand samples of an exponential distribution is further from it (Stephens 1974, mean estimated; its tail extended). */
const CRITICAL = 1.56;
/** A start so soon after a suspend is not told from a restart: shorter pauses are missing. */
const SOONEST_MS = 3_000;
/** Instants are whole seconds. */
const ROUNDED_MS = 1_000;

/**
 * True if the gaps fit memoryless visits: then the time since the last visit says nothing about the next, and timeouts differ only by the
 * worth of starts. Kolmogorov-Smirnov against the exponential distribution. If most gaps end right after the timeout, visits are not
 * memoryless: such visits would come each few seconds, and no timeout would ever pass.
 */
export function areMemoryless(excessMs: readonly number[]): boolean {
  if (excessMs.filter((ms) => ms < SOONEST_MS).length > excessMs.length / 2) return false;
  const sorted = new Float64Array(excessMs.filter((ms) => ms >= SOONEST_MS)).sort();
  const count = sorted.length;
  if (count < 5) return true;
  const mean = sorted.reduce((sum, ms) => sum + ms - SOONEST_MS, 0) / count;
  const expected = (ms: number) => 1 - Math.exp(-Math.max(0, ms - SOONEST_MS) / mean);
  const distance = sorted.reduce((most, ms, index) => {
    const [low, high] = [expected(ms - ROUNDED_MS), expected(ms + ROUNDED_MS)];
    return Math.max(most, low - index / count, (index + 1) / count - high);
  }, 0);
  const root = Math.sqrt(count);
  return (distance - 0.2 / count) * (root + 0.26 + 0.5 / root) < CRITICAL;
}
