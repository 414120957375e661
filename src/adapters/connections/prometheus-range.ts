import type { RecordedCount } from '../../domain/backtest/recording.ts';
import type { Compute } from '../../domain/compute.ts';
import type { CountError } from '../../ports/connections.ts';
import { failed } from './outcomes.ts';
import { connectionsIn, type Points, rangesIn } from './prometheus-answer.ts';
import { createPrometheusCall, filledIn, hasSafeIds, type PrometheusCallOptions } from './prometheus-call.ts';

/** A stretch of time and how often to look in it, in milliseconds. */
export interface RangeOfTime {
  fromMs: number;
  toMs: number;
  stepMs: number;
}

export interface RecordedCounts {
  /** What was counted of a compute; empty where nothing was. Never throws. */
  of(
    compute: Compute,
    range: RangeOfTime,
  ): Promise<{ ok: true; value: RecordedCount[] } | { ok: false; error: CountError }>;
  close(): Promise<void>;
}

/** Prometheus refuses more than 11,000 points of a series in one answer. */
const MOST_POINTS = 10_000;

const TIMEOUT_MS = 60_000;

/** What a Prometheus remembers of connections, by range queries. */
export function createPrometheusRecord({
  query,
  ...options
}: PrometheusCallOptions & { query: string }): RecordedCounts {
  const call = createPrometheusCall({ timeoutMs: TIMEOUT_MS, ...options });

  async function ask(text: string, { fromMs, toMs, stepMs }: RangeOfTime) {
    const [start, end, step] = [fromMs, toMs, stepMs].map((ms) => String(ms / 1000));
    const form = { query: text, start: start ?? '', end: end ?? '', step: step ?? '' };
    const reply = await call.post('query_range', form, new AbortController().signal);
    return reply.ok ? rangesIn(reply.status, reply.text) : reply;
  }

  return {
    async of(compute, { fromMs, toMs, stepMs }) {
      if (!hasSafeIds(compute)) return failed('misconfigured', 'its id can not stand in a query');
      const counts: RecordedCount[] = [];
      for (let startMs = fromMs; startMs <= toMs; startMs += MOST_POINTS * stepMs) {
        const endMs = Math.min(toMs, startMs + (MOST_POINTS - 1) * stepMs);
        const answer = await ask(filledIn(query, compute), { fromMs: startMs, toMs: endMs, stepMs });
        if (!answer.ok) return answer;
        const read = countsOf(answer.value);
        if (!read.ok) return read;
        counts.push(...read.value);
      }
      return { ok: true, value: counts };
    },
    close: () => call.close(),
  };
}

/** NaN is as if nothing had been counted. */
function countsOf(series: readonly Points[]): { ok: true; value: RecordedCount[] } | { ok: false; error: CountError } {
  if (series.length > 1)
    return failed('malformed', `the query gives ${series.length} series for it, not one: sum them`);
  const counts: RecordedCount[] = [];
  for (const [seconds, value] of series[0] ?? []) {
    if (value === 'NaN') continue;
    const connections = connectionsIn(value);
    if (!connections.ok) return connections;
    counts.push({ atMs: Math.round(seconds * 1000), connections: connections.value });
  }
  return { ok: true, value: counts };
}
