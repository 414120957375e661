import type { Sample, Series } from '../../domain/guards/verdict.ts';
import type { SourceAnswer } from '../../ports/connections.ts';
import type { SeriesRange, SeriesRead, SeriesSource } from '../../ports/guards.ts';
import { failed } from './outcomes.ts';
import {
  createPrometheusCall,
  instantOf,
  type PrometheusCallOptions,
  type RawSeries,
  rangeForm,
  rangesIn,
  seriesIn,
} from './prometheus-api.ts';

const MAX_SERIES = 20_000;

/** Points may lie this far outside of the range: clocks differ, and some servers move instants to multiples of the step. */
const TOLERANCE_MS = 60_000;

/** Asks a Prometheus for the series of guards. */
export function createPrometheusSeries(options: PrometheusCallOptions): SeriesSource & { close(): Promise<void> } {
  const call = createPrometheusCall(options);
  return {
    async latest(query, signal) {
      const answer = seriesIn(await call.post('query', { query }, signal));
      return answer.ok ? parsedSeries(answer.value) : answer;
    },
    async range(query, range, signal) {
      const answer = rangesIn(await call.post('query_range', rangeForm(query, range), signal));
      return answer.ok ? parsedSeries(answer.value, range) : answer;
    },
    close: () => call.close(),
  };
}

/** Parses series, and leaves out NaN. */
function parsedSeries(all: readonly RawSeries[], range?: SeriesRange): SeriesRead {
  if (all.length > MAX_SERIES) return failed('malformed', `the answer has ${all.length} series: aggregate them`);
  const series: Series[] = [];
  for (const { labels, points } of all) {
    const samples = samplesOf(points, range);
    if (!samples.ok) return samples;
    series.push({ labels, samples: samples.value });
  }
  return { ok: true, value: series };
}

function samplesOf(points: RawSeries['points'], range: SeriesRange | undefined): SourceAnswer<Sample[]> {
  const samples: Sample[] = [];
  for (const [seconds, text] of points) {
    const atMs = instantOf(seconds);
    if (range && (atMs < range.fromMs - TOLERANCE_MS || atMs > range.toMs + TOLERANCE_MS)) {
      return failed('malformed', 'the answer has points outside of the time that was asked for');
    }
    if (atMs <= (samples.at(-1)?.atMs ?? Number.NEGATIVE_INFINITY)) {
      return failed('malformed', 'the points of the answer are not in the order of time');
    }
    if (text === 'NaN') continue;
    const value = numberIn(text);
    if (value === undefined) return failed('malformed', `the answer has ${text.slice(0, 40)} for a number`);
    samples.push({ atMs, value });
  }
  return { ok: true, value: samples };
}

function numberIn(text: string): number | undefined {
  const infinite = /^([+-]?)Inf$/.exec(text);
  if (infinite) return infinite[1] === '-' ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  return /^[+-]?\d+(\.\d+)?(e[+-]?\d+)?$/i.test(text) ? Number(text) : undefined;
}
