import type { Sample, Series } from '../../domain/guards/verdict.ts';
import type { SeriesRange, SeriesRead, SeriesSource } from '../../ports/guards.ts';
import { failed, type Read } from './outcomes.ts';
import { rangesIn, seriesIn } from './prometheus-answer.ts';
import { createPrometheusCall, type PrometheusCallOptions } from './prometheus-call.ts';

/** More series than this are no answer about a fleet. */
const MOST_SERIES = 20_000;

/** Clocks, and steps that some servers round. */
const TOLERANCE_MS = 60_000;

/** Asks a Prometheus for the series of guards. */
export function createPrometheusSeries(options: PrometheusCallOptions): SeriesSource & { close(): Promise<void> } {
  const call = createPrometheusCall(options);
  return {
    async latest(query, signal) {
      const reply = await call.post('query', { query }, signal);
      const answer = reply.ok ? seriesIn(reply.status, reply.text) : reply;
      return answer.ok
        ? checked(answer.value.map(({ labels, atSeconds, value }) => ({ labels, points: [[atSeconds, value]] })))
        : answer;
    },
    async range(query, range, signal) {
      const [start, end, step] = [range.fromMs, range.toMs, range.stepMs].map((ms) => String(ms / 1000));
      const form = { query, start: start ?? '', end: end ?? '', step: step ?? '' };
      const reply = await call.post('query_range', form, signal);
      const answer = reply.ok ? rangesIn(reply.status, reply.text) : reply;
      return answer.ok ? checked(answer.value, range) : answer;
    },
    close: () => call.close(),
  };
}

interface WrittenSeries {
  labels: Readonly<Record<string, string>>;
  points: readonly (readonly [seconds: number, value: string])[];
}

/** The series of an answer. NaN is no sample. */
function checked(all: readonly WrittenSeries[], range?: SeriesRange): SeriesRead {
  if (all.length > MOST_SERIES) return failed('malformed', `the answer has ${all.length} series: aggregate them`);
  const series: Series[] = [];
  for (const { labels, points } of all) {
    const samples = samplesOf(points, range);
    if (!samples.ok) return samples;
    series.push({ labels, samples: samples.value });
  }
  return { ok: true, value: series };
}

function samplesOf(points: WrittenSeries['points'], range: SeriesRange | undefined): Read<Sample[]> {
  const samples: Sample[] = [];
  for (const [seconds, text] of points) {
    const atMs = Math.round(seconds * 1000);
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
