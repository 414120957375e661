/**
 * What rules would have saved in a compute's own past. Plans, diffs, forecasts, findings, pages and metrics all show this estimate.
 * Rules are settings over time. Negative savings are costs.
 */

import { MONTH_HOURS } from '../awake/causes.ts';
import { type AwakeHistory, within } from '../awake/intervals.ts';
import { awakeMsByHour } from '../awake/usage-while-awake.ts';
import { type ComputeSettings, sameSize } from '../compute/compute.ts';
import { maySleep } from '../compute/compute-units.ts';
import { type Estimate, useInHour } from '../forecast/expected.ts';
import type { Span } from '../forecast/forecast.ts';
import { sum } from '../sum.ts';
import { HOUR_MS } from '../time/units.ts';
import type { UsageBucket } from '../usage/usage.ts';
import { replayTimeouts, type TimeoutEffect } from './other-timeouts.ts';
import { pausesWithin } from './pauses.ts';
import { startTimeOf } from './timeout.ts';
import { type Visits, visitsUnder } from './visits.ts';

/** The past of one compute, as far as it is known. */
export interface Evidence {
  /** The settings that it had; where they may have changed, the widest range of them. */
  had: ComputeSettings;
  /** Its usage by the hour, oldest first. */
  hours?: readonly UsageBucket[] | undefined;
  /** When it was awake. */
  history?: AwakeHistory | undefined;
}

/** Settings over time, in order, without gaps. */
export type Rules = readonly (ComputeSettings & Span)[];

/** US dollars for a CU-hour at an instant; undefined where the price is unknown. */
export type PriceAt = (atMs: number) => number | undefined;

/** An amount of usage. */
export interface Amount {
  cuSeconds: Estimate;
  /** Undefined where a price is unknown. */
  usd: Estimate | undefined;
}

export interface Saving {
  /** What was used in the hours with known usage, or was awake at the minimum size. */
  used: Amount;
  /** Saved of it by other sizes and by sleeping at all; and by other timeouts. Together they save no more than was used. */
  bySizes: Amount;
  byTimeouts: Amount;
  saved: Amount;
  /** The usage and the saving of a month of 730 h, at the rate of the time that is known. */
  month: { used: Amount; saved: Amount };
  /** How well the effect of timeouts is known: `at_least` for shorter ones, `unknown` if it is not known when the compute was awake. */
  timeoutsFigure: 'replayed' | 'at_least' | 'unknown';
}

export const ZERO: Estimate = { low: 0, mid: 0, high: 0 };
export const NOTHING: Amount = { cuSeconds: ZERO, usd: ZERO };

/** The saving of rules against the settings that the compute had; undefined if nothing is known of that time. */
export function savingOf({ evidence, rules, priceAt }: { evidence: Evidence; rules: Rules; priceAt: PriceAt }) {
  const [first, last] = [rules[0], rules.at(-1)];
  if (!first || !last) return undefined;
  const past = pastWithin(evidence, { fromMs: first.fromMs, toMs: last.toMs });
  const sizes = replayedSizes(past, rules, priceAt);
  if (sizes.knownMs === 0) return undefined;
  const timeouts = replayedTimeouts(past, rules, priceAt);
  const ofTimeouts = timeouts ?? { amount: NOTHING, knownMs: sizes.knownMs, figure: 'unknown' as const };
  const perMonth = (amount: Amount, knownMs: number) => times(amount, (MONTH_HOURS * HOUR_MS) / knownMs);
  const monthUsed = perMonth(sizes.used, sizes.knownMs);
  const monthSaved = plus(
    perMonth(sizes.amount, sizes.knownMs),
    perMonth(ofTimeouts.amount, Math.max(1, ofTimeouts.knownMs)),
  );
  const saving: Saving = {
    used: sizes.used,
    bySizes: sizes.amount,
    byTimeouts: atMost(sizes.used, ofTimeouts.amount),
    saved: atMost(sizes.used, plus(sizes.amount, ofTimeouts.amount)),
    month: { used: monthUsed, saved: atMost(monthUsed, monthSaved) },
    timeoutsFigure: ofTimeouts.figure,
  };
  return saving;
}

/** The saving of a change of rules, by the savings of both against the same past. The ends of both rest on the same unknown. */
export function savingBetween(before: Amount, after: Amount): Amount {
  const between = (one: Estimate, two: Estimate): Estimate => {
    const ends = [two.low - one.low, two.high - one.high, two.mid - one.mid];
    return { low: Math.min(...ends), mid: two.mid - one.mid, high: Math.max(...ends) };
  };
  return {
    cuSeconds: between(before.cuSeconds, after.cuSeconds),
    usd: before.usd && after.usd && between(before.usd, after.usd),
  };
}

export function plus(one: Amount, two: Amount): Amount {
  return {
    cuSeconds: combined(one.cuSeconds, two.cuSeconds, (a, b) => a + b),
    usd: one.usd && two.usd && combined(one.usd, two.usd, (a, b) => a + b),
  };
}

/** A saving can't exceed the usage, whatever its parts add up to. */
function atMost(used: Amount, saved: Amount): Amount {
  return {
    cuSeconds: combined(saved.cuSeconds, used.cuSeconds, Math.min),
    usd: saved.usd && used.usd && combined(saved.usd, used.usd, Math.min),
  };
}

export function times({ cuSeconds, usd }: Amount, factor: number): Amount {
  const each = (one: Estimate) => ({ low: one.low * factor, mid: one.mid * factor, high: one.high * factor });
  return { cuSeconds: each(cuSeconds), usd: usd && each(usd) };
}

function combined(one: Estimate, two: Estimate, combine: (a: number, b: number) => number): Estimate {
  return { low: combine(one.low, two.low), mid: combine(one.mid, two.mid), high: combine(one.high, two.high) };
}

function amountOf(cuSeconds: Estimate, price: number | undefined): Amount {
  const amount = { cuSeconds, usd: undefined };
  return price === undefined ? amount : { cuSeconds, usd: times(amount, price / 3600).cuSeconds };
}

/** The part of the past to which the rules apply. Without measurements each awake hour counts at the minimum size. */
function pastWithin({ had, hours, history }: Evidence, { fromMs, toMs }: Span) {
  const part = history && within(history, fromMs);
  const known = (hours ?? (part ? hoursAtMinimum(part, had.minCu) : [])).flatMap(({ startMs, seconds, cuSeconds }) =>
    seconds === 3600 && cuSeconds !== null && startMs >= fromMs && startMs < toMs ? [{ startMs, cuSeconds }] : [],
  );
  return { had, hours: known, history: part };
}

type Past = ReturnType<typeof pastWithin>;

function hoursAtMinimum(history: AwakeHistory, minCu: number): UsageBucket[] {
  const awakeIn = awakeMsByHour(history);
  const hours: UsageBucket[] = [];
  for (let startMs = Math.ceil(history.fromMs / HOUR_MS) * HOUR_MS; startMs < history.toMs; startMs += HOUR_MS) {
    const awakeMs = awakeIn(startMs);
    hours.push({ startMs, seconds: 3600, cuSeconds: awakeMs === undefined ? null : (awakeMs / 1000) * minCu });
  }
  return hours;
}

/** The saving by sizes, and by sleeping at all, over the hours with known usage; and that usage. */
function replayedSizes({ had, hours, history }: Past, rules: Rules, priceAt: PriceAt) {
  const awakeIn = history && awakeMsByHour(history);
  let next = 0;
  let [used, amount, knownMs] = [NOTHING, NOTHING, 0];
  for (const { startMs, cuSeconds } of hours) {
    while ((rules[next]?.toMs ?? Number.POSITIVE_INFINITY) <= startMs) next += 1;
    const rule = rules[next];
    if (!rule || rule.fromMs > startMs) continue;
    const awakeMs = awakeIn?.(startMs);
    const share = awakeMs === undefined ? undefined : awakeMs / HOUR_MS;
    const would =
      sameSize(had, rule) && maySleep(had) === maySleep(rule)
        ? undefined
        : useInHour(cuSeconds / 3600, had, rule, share);
    const [low, high] = would ? [cuSeconds - would.high * 3600, cuSeconds - would.low * 3600] : [0, 0];
    const price = priceAt(startMs);
    knownMs += HOUR_MS;
    used = plus(used, amountOf({ low: cuSeconds, mid: cuSeconds, high: cuSeconds }, price));
    amount = plus(amount, amountOf({ low, mid: (low + high) / 2, high }, price));
  }
  return { used, amount, knownMs };
}

/** The further saving by timeouts, at the smallest size: a compute that waits for its timeout is idle. */
function replayedTimeouts({ had: { suspendTimeoutSeconds }, history }: Past, rules: Rules, priceAt: PriceAt) {
  const visits = history && visitsUnder(history, suspendTimeoutSeconds);
  if (!history || !visits || visits.knownMs <= 0) return undefined;
  const own = { ...history, intervals: [...visits.intervals] };
  const span = { fromMs: visits.fromMs, toMs: Number.POSITIVE_INFINITY, suspendTimeoutSeconds };
  const effects = replayTimeouts(own, [span], rules);
  const sumOf = (figure: TimeoutEffect['figure']) =>
    effects.reduce((total, { atMs, savedMs: { low, high }, ...effect }) => {
      const rule = effect.figure === figure ? ruleAt(rules, atMs) : undefined;
      if (!rule) return total;
      const cuSeconds = (ms: number) => (ms / 1000) * rule.minCu;
      return plus(total, amountOf({ low: cuSeconds(low), mid: cuSeconds(low), high: cuSeconds(high) }, priceAt(atMs)));
    }, NOTHING);
  const shorter = sumOf('at_least');
  const share = expectedShare({ visits, effects, rules, startMs: startTimeOf(history) });
  const estimated = (one: Estimate): Estimate => {
    // Nothing is promised where more starts could cost more than the earlier suspends save.
    const low = Math.max(0, one.low);
    return { low, mid: low + share * (one.high - low), high: one.high };
  };
  const amount = { cuSeconds: estimated(shorter.cuSeconds), usd: shorter.usd && estimated(shorter.usd) };
  return {
    amount: plus(sumOf('replayed'), amount),
    knownMs: visits.knownMs,
    figure: shorter.cuSeconds.high === 0 ? ('replayed' as const) : ('at_least' as const),
  };
}

/** Where between the ends of the effects of shorter timeouts their expected value is, in [0, 1]: by the pauses within the intervals. */
function expectedShare(past: {
  visits: Visits;
  effects: readonly TimeoutEffect[];
  rules: Rules;
  startMs: number;
}): number {
  const { visits, effects, rules, startMs } = past;
  const shorter = effects.filter(({ figure }) => figure === 'at_least');
  const low = Math.max(0, sum(shorter.map(({ savedMs }) => savedMs.low)));
  const high = sum(shorter.map(({ savedMs }) => savedMs.high));
  if (high <= low) return 0;
  const byTimeout = new Map<number, Visits['intervals'][number][]>();
  for (const interval of visits.intervals) {
    const timeoutMs = 1000 * (ruleAt(rules, interval.endMs - 1)?.suspendTimeoutSeconds ?? 0);
    if (timeoutMs <= 0 || timeoutMs >= visits.timeoutMs) continue;
    const own = byTimeout.get(timeoutMs) ?? [];
    byTimeout.set(timeoutMs, own);
    own.push(interval);
  }
  const expected = sum(
    [...byTimeout].map(([timeoutMs, intervals]) => {
      return pausesWithin({ ...visits, intervals })({ timeoutMs, startWorthMs: startMs }).gainMs;
    }),
  );
  return Math.min(1, Math.max(0, (expected - low) / (high - low)));
}

function ruleAt(rules: Rules, atMs: number) {
  return rules.find(({ fromMs, toMs }) => fromMs <= atMs && atMs < toMs);
}
