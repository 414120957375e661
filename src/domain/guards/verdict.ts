/** The verdict of a guard on one compute at one instant, from its samples. */

import type { Compute } from '../compute/compute.ts';
import { getOrAdd, groupBy } from '../grouping.ts';
import { lowerBound, quantile } from '../sorted.ts';
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

/** Earlier samples, a sample every {@link PAST_STEP_MS}. */
export interface PastReadings {
  /** The last two days. */
  days: readonly Series[];
  /** The present hour of the day, such as 14:00 to 15:00, on each of the {@link EARLIER_DAYS} before. */
  sameHours: readonly (readonly Series[])[];
}

/** The step of past samples: twelve of them are an hour. */
export const PAST_STEP_MS = 5 * MINUTE_MS;

/** How many earlier days a relative guard looks at: two weeks, so that they contain a weekly batch twice. */
export const EARLIER_DAYS = 14;

/** The number of samples of an hour awake; a compute has none while it sleeps. */
const HOUR_SAMPLES = HOUR_MS / PAST_STEP_MS;

/** With fewer samples than this there is nothing to compare with. */
const LEAST_SAMPLES = HOUR_SAMPLES / 2;

/** The quantile of an earlier day up to which values are usual: single outliers are not. If low values are bad, 1 minus this share. */
const USUAL_SHARE = 0.9;

export interface Verdict {
  state: 'healthy' | 'bad' | 'unknown';
  value?: number;
  limit?: number;
  /** One sentence. */
  message: string;
}

/** Returns the limit of a relative guard for a compute with these keys; undefined with too few samples. */
export type LimitOf = (keys: readonly string[], beforeMs: number) => number | undefined;

/**
 * Returns a function for the verdict on a compute, from the latest value of each series. A relative limit refers to the values before
 * `beforeMs`. The message of an unknown verdict says what is missing.
 */
export function judgeBy(
  guard: GuardTerms,
  latest: readonly Series[],
  limitOf: LimitOf,
): (compute: Compute, beforeMs: number) => Verdict {
  const latestByKey = byKey(guard, latest);
  return (compute, beforeMs) => {
    const keys = keysFor(guard.match, compute);
    const series = keys.flatMap((key) => latestByKey.get(key) ?? []);
    const values = series.flatMap(({ samples }) => samples.at(-1) ?? []);
    if (values.length > 1 && !guard.isAlert) {
      return unknown(`${values.length} series match it, not one: aggregate them in the query, or match more labels`);
    }
    if (values.length === 0) {
      if (guard.noData === 'healthy') return { state: 'healthy', message: 'no value, which counts as healthy' };
      return unknown(
        series.length === 0 ? `no series has its ${matchText(guard, compute)}` : 'its series has no value',
      );
    }
    const value = Math.max(...values.map((sample) => sample.value));
    const limit = guard.badWhen.relative ? limitOf(keys, beforeMs) : guard.badWhen.limit;
    if (limit === undefined)
      return { ...unknown(`${formatValue(value)}, with too few values before to compare it with`), value };
    return verdictOf(guard.badWhen, value, limit);
  };
}

function byKey({ match }: GuardTerms, all: readonly Series[]): Map<string, Series[]> {
  return groupBy(all, ({ labels }) => keyOf(match, labels));
}

/** The earlier samples of a compute. */
interface OwnPast {
  /** Oldest first. */
  samples: readonly Sample[];
  instants: readonly number[];
  /** Two limits of each earlier day with enough samples: its {@link USUAL_SHARE} quantile, and the multiple of its median. */
  dailyLimits: readonly number[];
}

/**
 * Returns the function for the limit of a relative guard at an instant. It is the widest of these limits:
 * - the guard's multiple of the median of the last hour awake;
 * - for each day of {@link PastReadings.sameHours} with enough samples, the same multiple of its median, and its {@link USUAL_SHARE} quantile. So
 *   a batch that comes every day is compared with itself.
 */
export function limitsFrom(guard: GuardTerms, { days, sameHours }: PastReadings): LimitOf {
  const { side, limit: factor } = guard.badWhen;
  const usualShare = side === 'above' ? USUAL_SHARE : 1 - USUAL_SHARE;
  const [ofDays, ofHours] = [byKey(guard, days), sameHours.map((day) => byKey(guard, day))];
  const pasts = new Map<string, OwnPast>();

  function pastOf(keys: readonly string[]): OwnPast {
    const within = (series: ReadonlyMap<string, readonly Series[]>) =>
      keys.flatMap((key) => series.get(key) ?? []).flatMap(({ samples }) => samples);
    const samples = within(ofDays).toSorted((a, b) => a.atMs - b.atMs);
    const dailyLimits = ofHours
      .map((day) => within(day).map(({ value }) => value))
      .filter((values) => values.length >= LEAST_SAMPLES)
      .flatMap((values) => [quantileOf(values, usualShare), quantileOf(values, 0.5) * factor]);
    return { samples, instants: samples.map(({ atMs }) => atMs), dailyLimits };
  }

  return (keys, beforeMs) => {
    const past = getOrAdd(pasts, keys.join('\n'), () => pastOf(keys));
    const end = lowerBound(past.instants, beforeMs);
    const start = Math.max(end - HOUR_SAMPLES, lowerBound(past.instants, beforeMs - DAY_MS));
    if (end - start < LEAST_SAMPLES) return undefined;
    const before = past.samples.slice(start, end).map(({ value }) => value);
    const limit = quantileOf(before, 0.5) * factor;
    return side === 'above' ? Math.max(limit, ...past.dailyLimits) : Math.min(limit, ...past.dailyLimits);
  };
}

/** The quantile of at least one value. */
function quantileOf(values: readonly number[], share: number): number {
  return quantile(values, share) ?? Number.NaN;
}

function verdictOf({ side }: BadWhen, value: number, limit: number): Verdict {
  const isBad = side === 'above' ? value > limit : value < limit;
  const message = `${formatValue(value)}, bad ${side} ${formatValue(limit)}`;
  return { state: isBad ? 'bad' : 'healthy', value, limit, message };
}

function unknown(message: string): Verdict {
  return { state: 'unknown', message };
}

/** Formats a value with four digits, enough to compare. */
function formatValue(value: number): string {
  if (Number.isFinite(value)) return String(Number(value.toPrecision(4)));
  return value > 0 ? '+Inf' : '-Inf';
}

/** A value for JSON, which has no infinite numbers: they become texts. */
export function numberJson(value: number | undefined): number | string | null {
  if (value === undefined) return null;
  return Number.isFinite(value) ? value : formatValue(value);
}

function matchText({ match }: GuardTerms, compute: Compute): string {
  const [values] = keysFor(match, compute).map((key) => JSON.parse(key) as string[]);
  const labels = Object.keys(match);
  if (!values) return `${labels.join(', ')}: the match has no value for it`;
  return labels.map((label, index) => `${label}=${JSON.stringify(values[index])}`).join(', ');
}
