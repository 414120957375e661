/** The verdict of a guard on one compute at one instant, from its samples. */

import type { Compute } from '../compute/compute.ts';
import { groupBy } from '../grouping.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../time/units.ts';
import { type BadWhen, type GuardTerms, keyOf, keysFor } from './guard.ts';

export interface Sample {
  /** Milliseconds since the epoch. */
  atMs: number;
  /** May be infinite, but is never NaN: that is no sample. */
  value: number;
}

export interface Series {
  labels: Readonly<Record<string, string>>;
  /** Oldest first. */
  samples: readonly Sample[];
}

/** The answers of a source for one guard. */
export interface GuardReadings {
  /** The latest value of each series; the source itself leaves out old ones. */
  latest: readonly Series[];
  /** The last two days, a sample every {@link PAST_STEP_MS}; only for relative guards. */
  days?: readonly Series[];
  /** The same hours of each of the 14 days before, a sample every {@link PAST_STEP_MS}; only for relative guards. */
  sameHours?: readonly (readonly Series[])[];
}

/** The step of past samples: twelve of them are an hour. */
export const PAST_STEP_MS = 5 * MINUTE_MS;

/** How many earlier days a relative guard looks at: two weeks, so that they contain a weekly batch twice. */
export const EARLIER_DAYS = 14;

/** The number of samples of an hour awake; a compute has none while it sleeps. */
const HOUR_SAMPLES = HOUR_MS / PAST_STEP_MS;

/** Fewer samples are no reference. */
const LEAST_SAMPLES = HOUR_SAMPLES / 2;

/** The quantile of an earlier day's samples up to which values are usual: single outliers are not. */
const USUAL_SHARE = 0.9;

export interface Verdict {
  state: 'healthy' | 'bad' | 'unknown';
  value?: number;
  limit?: number;
  /** One sentence. */
  message: string;
}

/**
 * Returns a function for the verdict on a compute. A relative limit refers to the values before `beforeMs`. The message of an unknown
 * verdict says what is missing.
 */
export function judgeBy(guard: GuardTerms, readings: GuardReadings): (compute: Compute, beforeMs: number) => Verdict {
  const latestOf = seriesByCompute(guard, readings.latest);
  const daysOf = seriesByCompute(guard, readings.days ?? []);
  const sameHoursOf = (readings.sameHours ?? []).map((day) => seriesByCompute(guard, day));
  return (compute, beforeMs) => {
    const latest = latestOf(compute);
    const values = latest.flatMap(({ samples }) => samples.at(-1) ?? []);
    if (values.length > 1 && !guard.isAlert) {
      return unknown(`${values.length} series match it, not one: aggregate them in the query, or match more labels`);
    }
    if (values.length === 0) {
      if (guard.noData === 'healthy') return { state: 'healthy', message: 'no value, which is healthy' };
      return unknown(
        latest.length === 0 ? `no series has its ${matchText(guard, compute)}` : 'its series has no value',
      );
    }
    const value = Math.max(...values.map((sample) => sample.value));
    if (!guard.badWhen.relative) return verdictOf(guard.badWhen, value, guard.badWhen.limit);
    const samplesOf = (series: readonly Series[]) => series.flatMap(({ samples }) => samples);
    const limit = relativeLimit(guard.badWhen, {
      days: samplesOf(daysOf(compute)),
      sameHours: sameHoursOf.map((of) => samplesOf(of(compute))),
      beforeMs,
    });
    if (limit === undefined)
      return { ...unknown(`${formatted(value)}, with too few values before to compare it with`), value };
    return verdictOf(guard.badWhen, value, limit);
  };
}

function seriesByCompute({ match }: GuardTerms, all: readonly Series[]): (compute: Compute) => Series[] {
  const byKey = groupBy(all, ({ labels }) => keyOf(match, labels));
  return (compute) => keysFor(match, compute).flatMap((key) => byKey.get(key) ?? []);
}

/**
 * The limit of a relative guard: a multiple of the median of the last hour awake before an instant, but not within the usual values of the
 * same hours in the last two weeks. Undefined with too few samples. Earlier days with too few samples are ignored.
 */
export function relativeLimit(
  { side, limit: factor }: BadWhen,
  past: { days: readonly Sample[]; sameHours: readonly (readonly Sample[])[]; beforeMs: number },
): number | undefined {
  const before = past.days
    .filter(({ atMs }) => atMs < past.beforeMs && atMs >= past.beforeMs - DAY_MS)
    .toSorted((a, b) => a.atMs - b.atMs)
    .slice(-HOUR_SAMPLES)
    .map(({ value }) => value);
  if (before.length < LEAST_SAMPLES) return undefined;
  const limit = quantile(before, 0.5) * factor;
  const usualShare = side === 'above' ? USUAL_SHARE : 1 - USUAL_SHARE;
  const usual = past.sameHours
    .filter((day) => day.length >= LEAST_SAMPLES)
    .map((day) => day.map(({ value }) => value))
    .map((values) => quantile(values, usualShare));
  return side === 'above' ? Math.max(limit, ...usual) : Math.min(limit, ...usual);
}

/** The value below which a share of the values lies; NaN without values. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

function verdictOf({ side }: BadWhen, value: number, limit: number): Verdict {
  const isBad = side === 'above' ? value > limit : value < limit;
  const message = `${formatted(value)}, bad ${side} ${formatted(limit)}`;
  return { state: isBad ? 'bad' : 'healthy', value, limit, message };
}

function unknown(message: string): Verdict {
  return { state: 'unknown', message };
}

/** Formats a value with four digits, enough to compare. */
export function formatted(value: number): string {
  if (Number.isFinite(value)) return String(Number(value.toPrecision(4)));
  return value > 0 ? '+Inf' : '-Inf';
}

function matchText({ match }: GuardTerms, compute: Compute): string {
  const [values] = keysFor(match, compute).map((key) => JSON.parse(key) as string[]);
  const labels = Object.keys(match);
  if (!values) return `${labels.join(', ')}: the match has no value for it`;
  return labels.map((label, index) => `${label}=${JSON.stringify(values[index])}`).join(', ');
}
