import type { AwakeHistory } from '../awake/intervals.ts';
import type { Range } from '../estimate.ts';
import { type Span, spanAt } from '../time/span.ts';
import { maxExtraSuspends, startTimeOf } from './timeout.ts';

/** A span with its timeout in canonical seconds: a part of `SettingsOverTime` (saving.ts), or a segment of a forecast. */
export interface TimeoutSpan extends Span {
  suspendTimeoutSeconds: number;
}

/** The effect of another timeout on the end of one awake interval. */
interface TimeoutEffect {
  /** The actual suspend or that under the other timeout, whichever is earlier. */
  atMs: number;
  /** The awake time saved, in milliseconds; negative if the compute would have been awake longer. */
  savedMs: Range;
  /** `replayed`: for a longer timeout; exact if nothing runs in the compute by itself. `at_least`: for a shorter one; only the low end is certain. */
  figure: 'replayed' | 'at_least';
}

/**
 * The awake time that other timeouts would have saved, by awake interval, computed as by `proposeTimeout`. Intervals under a timeout of
 * "never" are left out: see `useInHour`. Spans are in order of time.
 */
export function replayTimeouts(
  history: Pick<AwakeHistory, 'intervals' | 'unknown' | 'toMs' | 'startDurationsMs'>,
  had: readonly TimeoutSpan[],
  wanted: readonly TimeoutSpan[],
): TimeoutEffect[] {
  const startMs = startTimeOf(history);
  return history.intervals.flatMap((interval, index): TimeoutEffect[] => {
    const { endMs, end } = interval;
    const hadMs = 1000 * (spanAt(had, endMs - 1)?.suspendTimeoutSeconds ?? 0);
    const wantedMs = 1000 * (spanAt(wanted, endMs - 1)?.suspendTimeoutSeconds ?? 0);
    if (hadMs <= 0 || wantedMs <= 0 || hadMs === wantedMs) return [];
    const activeMs = endMs - hadMs;
    if (wantedMs > hadMs) {
      if (end !== 'timeout') return [];
      const unknownMs = history.unknown.find(({ fromMs }) => fromMs >= endMs)?.fromMs ?? history.toMs;
      const nextMs = Math.min(history.intervals[index + 1]?.startMs ?? history.toMs, unknownMs);
      const moreMs = Math.max(0, Math.min(suspendedAt(wanted, activeMs), nextMs) - endMs);
      return [{ atMs: endMs, savedMs: { low: -moreMs, high: -moreMs }, figure: 'replayed' }];
    }
    const extra = maxExtraSuspends(interval, hadMs, wantedMs);
    const sooner =
      end === 'timeout' ? Math.max(0, endMs - Math.max(suspendedAt(wanted, activeMs), interval.startMs)) : 0;
    const savedMs = {
      low: sooner - extra * startMs,
      high: Math.min(endMs - interval.startMs, sooner + extra * (hadMs - wantedMs)),
    };
    return [{ atMs: endMs - sooner, savedMs, figure: 'at_least' }];
  });
}

/** When a compute suspends after its last client activity, milliseconds since the epoch; the timeout may change in between. */
export function suspendedAt(spans: readonly TimeoutSpan[], activeMs: number): number {
  for (const { fromMs, toMs, suspendTimeoutSeconds } of spans) {
    if (toMs <= activeMs || suspendTimeoutSeconds <= 0) continue;
    const untilMs = Math.max(fromMs, activeMs + 1000 * suspendTimeoutSeconds);
    if (untilMs < toMs) return untilMs;
  }
  return Number.POSITIVE_INFINITY;
}
