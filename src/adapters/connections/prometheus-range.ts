import type { RecordedCount } from '../../domain/backtest/recording.ts';
import type { Compute } from '../../domain/compute/compute.ts';
import { failed, type Read } from './outcomes.ts';
import { connectionsIn, type RangeSeries, rangesIn, tooManySeries } from './prometheus-answer.ts';
import { createPrometheusCall, filledIn, hasSafeIds, type PrometheusCallOptions } from './prometheus-call.ts';

/** A stretch of time without its end, and how often to look in it, in milliseconds. */
export interface RangeOfTime {
  fromMs: number;
  toMs: number;
  stepMs: number;
}

export interface RecordedCounts {
  /** Counts of a compute, oldest first; empty where there are none. Never throws. */
  of(compute: Compute, range: RangeOfTime): Promise<Read<RecordedCount[]>>;
  close(): Promise<void>;
}

/** Prometheus refuses more than 11,000 points of a series in one answer. */
const MOST_POINTS = 10_000;

const TIMEOUT_MS = 60_000;

/** Clocks and rounding; some servers put the instants on multiples of the step. */
const LEAST_TOLERANCE_MS = 1000;

/** Reads past connection counts from a Prometheus by range queries. */
export function createPrometheusRecord({
  query,
  ...options
}: PrometheusCallOptions & { query: string }): RecordedCounts {
  const call = createPrometheusCall({ timeoutMs: TIMEOUT_MS, ...options });

  async function ask(text: string, range: RangeOfTime) {
    // An answer has its `end`, too.
    const lastMs = range.fromMs + (pointsOf(range) - 1) * range.stepMs;
    const form = {
      query: text,
      start: inSeconds(range.fromMs),
      end: inSeconds(lastMs),
      step: inSeconds(range.stepMs),
    };
    const reply = await call.post('query_range', form, new AbortController().signal);
    return reply.ok ? rangesIn(reply.status, reply.text) : reply;
  }

  return {
    async of(compute, { fromMs, toMs, stepMs }) {
      if (!hasSafeIds(compute)) return failed('misconfigured', 'its id can not stand in a query');
      const counts: RecordedCount[] = [];
      for (let startMs = fromMs; startMs < toMs; startMs += MOST_POINTS * stepMs) {
        const part = { fromMs: startMs, toMs: Math.min(toMs, startMs + MOST_POINTS * stepMs), stepMs };
        const answer = await ask(filledIn(query, compute), part);
        if (!answer.ok) return answer;
        const read = countsOf(answer.value, part);
        if (!read.ok) return read;
        for (const count of read.value) counts.push(count);
      }
      if (!isInOrder(counts)) return failed('malformed', 'the points of the answer are not in the order of time');
      return { ok: true, value: counts };
    },
    close: () => call.close(),
  };
}

function inSeconds(ms: number): string {
  return String(ms / 1000);
}

function pointsOf({ fromMs, toMs, stepMs }: RangeOfTime): number {
  return Math.ceil((toMs - fromMs) / stepMs);
}

function isInOrder(counts: readonly RecordedCount[]): boolean {
  return counts.every(({ atMs }, index) => atMs > (counts[index - 1]?.atMs ?? Number.NEGATIVE_INFINITY));
}

/** NaN is as if nothing had been counted. */
function countsOf(series: readonly RangeSeries[], range: RangeOfTime): Read<RecordedCount[]> {
  if (series.length > 1) return tooManySeries(series.length);
  const points = series[0]?.points ?? [];
  if (points.length > pointsOf(range)) return failed('malformed', 'the answer has more points than were asked for');
  const toleranceMs = Math.max(LEAST_TOLERANCE_MS, range.stepMs);
  const counts: RecordedCount[] = [];
  for (const [seconds, value] of points) {
    const atMs = Math.round(seconds * 1000);
    if (atMs < range.fromMs - toleranceMs || atMs > range.toMs + toleranceMs) {
      return failed('malformed', 'the answer has points outside of the time that was asked for');
    }
    if (value === 'NaN') continue;
    const connections = connectionsIn(value);
    if (!connections.ok) return connections;
    counts.push({ atMs, connections: connections.value });
  }
  return { ok: true, value: counts };
}
