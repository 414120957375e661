import type { RecordedCount } from '../../domain/backtest/replay.ts';
import type { Compute } from '../../domain/compute/compute.ts';
import type { SourceAnswer } from '../../ports/connections.ts';
import type { SeriesRange } from '../../ports/guards.ts';
import { failed } from './outcomes.ts';
import {
  connectionsIn,
  createPrometheusCall,
  filledIn,
  hasSafeIds,
  instantOf,
  type PrometheusCallOptions,
  type RawSeries,
  rangeForm,
  rangesIn,
  tooManySeries,
} from './prometheus-api.ts';

/** Prometheus refuses more than 11,000 points of a series in one answer. */
const MAX_POINTS = 10_000;

const TIMEOUT_MS = 60_000;

/** Points may lie this far outside of the range, or a step if that is longer: some servers move instants to multiples of the step. */
const LEAST_TOLERANCE_MS = 1000;

/** Reads past connection counts from a Prometheus by range queries. */
export function createPrometheusHistory({ query, ...options }: PrometheusCallOptions & { query: string }) {
  const call = createPrometheusCall({ timeoutMs: TIMEOUT_MS, ...options });

  async function ask(text: string, range: SeriesRange): Promise<SourceAnswer<RawSeries[]>> {
    const lastMs = range.fromMs + (pointsOf(range) - 1) * range.stepMs;
    const form = rangeForm(text, { ...range, toMs: lastMs });
    return rangesIn(await call.post('query_range', form, new AbortController().signal));
  }

  return {
    /** Counts of a compute in a range (`toMs` exclusive), oldest first. Never throws. */
    async counts(compute: Compute, { fromMs, toMs, stepMs }: SeriesRange): Promise<SourceAnswer<RecordedCount[]>> {
      if (!hasSafeIds(compute)) return failed('misconfigured', 'its id cannot be used in a query');
      const counts: RecordedCount[] = [];
      for (let startMs = fromMs; startMs < toMs; startMs += MAX_POINTS * stepMs) {
        const part = { fromMs: startMs, toMs: Math.min(toMs, startMs + MAX_POINTS * stepMs), stepMs };
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

function pointsOf({ fromMs, toMs, stepMs }: SeriesRange): number {
  return Math.ceil((toMs - fromMs) / stepMs);
}

function isInOrder(counts: readonly RecordedCount[]): boolean {
  return counts.every(({ atMs }, index) => atMs > (counts[index - 1]?.atMs ?? Number.NEGATIVE_INFINITY));
}

/** The counts of an answer, without NaN. */
function countsOf(series: readonly RawSeries[], range: SeriesRange): SourceAnswer<RecordedCount[]> {
  if (series.length > 1) return tooManySeries(series.length);
  const points = series[0]?.points ?? [];
  if (points.length > pointsOf(range)) return failed('malformed', 'the answer has more points than were asked for');
  const toleranceMs = Math.max(LEAST_TOLERANCE_MS, range.stepMs);
  const counts: RecordedCount[] = [];
  for (const [seconds, value] of points) {
    const atMs = instantOf(seconds);
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
