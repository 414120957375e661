/** Answers queries with past samples of a source: a replay asks, for each past instant, what a daemon would have asked at that instant. */

import { PAST_STEP_MS, type Series } from '../../domain/guards/verdict.ts';
import type { ConnectionSource } from '../../domain/policy/policy.ts';
import { sum } from '../../domain/sum.ts';
import { HOUR_MS, MINUTE_MS } from '../../domain/time/units.ts';
import type { SeriesRange, SeriesRead, SeriesSource, SeriesSources } from '../../ports/guards.ts';
import { ROUND_MS } from './observed.ts';

/** The lengths of the ranges that are read at once, in milliseconds: for the rounds of an hour, and for earlier samples. */
const ROUNDS_MS = HOUR_MS;
const PAST_MS = 6 * HOUR_MS;

/** A range that is too much for the source is read in halves, down to this length, in milliseconds. */
const SHORTEST_MS = 5 * MINUTE_MS;

/** While ranges have more samples than this, the least recently used one is forgotten. */
const MAX_SAMPLES = 3_000_000;
/** This many ranges are always kept. A round needs fewer: nine parts of two days, one or two of each of fourteen earlier days, and its hour. */
const LEAST_KEPT = 40;

interface RecordedRange {
  read: Promise<SeriesRead>;
  samples: number;
}

export interface RecordedSeries extends SeriesSources {
  /** Sets the instant of the latest values, a multiple of {@link ROUND_MS}. */
  seek(nowMs: number): void;
}

/** Creates a source that answers from ranges: a range query has the same values as instant queries at its instants. */
export function createRecordedSeries(sources: SeriesSources): RecordedSeries {
  const ranges = new Map<string, RecordedRange>();
  let nowMs = 0;

  function readOnce(
    source: ConnectionSource,
    query: string,
    range: SeriesRange,
    signal: AbortSignal,
  ): Promise<SeriesRead> {
    const key = JSON.stringify([source.name, query, range]);
    const entry = ranges.get(key) ?? { read: readInParts(sources.of(source), query, range, signal), samples: 0 };
    ranges.delete(key);
    ranges.set(key, entry);
    return entry.read.then((answer) => {
      entry.samples = answer.ok ? sum(answer.value.map(({ samples }) => samples.length)) : 0;
      forgetOldest();
      return answer;
    });
  }

  function forgetOldest(): void {
    let samples = sum([...ranges.values()].map((one) => one.samples));
    for (const [key, one] of ranges) {
      if (samples <= MAX_SAMPLES || ranges.size <= LEAST_KEPT) return;
      samples -= one.samples;
      ranges.delete(key);
    }
  }

  return {
    seek(atMs) {
      nowMs = atMs;
    },
    of: (source) => ({
      async latest(query, signal) {
        const fromMs = nowMs - (nowMs % ROUNDS_MS);
        const range = { fromMs, toMs: fromMs + ROUNDS_MS - ROUND_MS, stepMs: ROUND_MS };
        const answer = await readOnce(source, query, range, signal);
        return answer.ok ? { ok: true, value: between(answer.value, nowMs, nowMs) } : answer;
      },
      async range(query, { fromMs, toMs }, signal) {
        const series: Series[] = [];
        for (let startMs = fromMs - (fromMs % PAST_MS); startMs <= toMs; startMs += PAST_MS) {
          const range = { fromMs: startMs, toMs: startMs + PAST_MS - PAST_STEP_MS, stepMs: PAST_STEP_MS };
          const answer = await readOnce(source, query, range, signal);
          if (!answer.ok) return answer;
          series.push(...between(answer.value, fromMs, toMs));
        }
        return { ok: true, value: series };
      },
    }),
    close: () => sources.close(),
  };
}

function between(all: readonly Series[], fromMs: number, toMs: number): Series[] {
  return all.flatMap(({ labels, samples }) => {
    const within = samples.filter(({ atMs }) => atMs >= fromMs && atMs <= toMs);
    return within.length > 0 ? [{ labels, samples: within }] : [];
  });
}

async function readInParts(
  source: SeriesSource,
  query: string,
  range: SeriesRange,
  signal: AbortSignal,
): Promise<SeriesRead> {
  const { fromMs, toMs, stepMs } = range;
  const answer = await source.range(query, range, signal);
  const mayBeTooMuch = !answer.ok && ['malformed', 'timeout', 'unavailable'].includes(answer.error.code);
  if (!mayBeTooMuch || toMs - fromMs <= SHORTEST_MS || signal.aborted) return answer;
  const middleMs = fromMs + Math.floor((toMs - fromMs) / 2 / stepMs) * stepMs;
  const first = await readInParts(source, query, { fromMs, toMs: middleMs, stepMs }, signal);
  if (!first.ok) return first;
  const second = await readInParts(source, query, { fromMs: middleMs + stepMs, toMs, stepMs }, signal);
  return second.ok ? { ok: true, value: [...first.value, ...second.value] } : second;
}
