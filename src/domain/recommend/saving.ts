/**
 * Estimates what rules (settings over time) would have saved in a compute's own past. Plans, diffs, forecasts, findings, pages and metrics
 * all show this estimate. Negative savings are costs.
 *
 * Each figure has an expected value and a range. For sizes the ends of the range are bounds (`useInHour` in forecast/expected.ts). For
 * timeouts (timeout.ts, long-timeout.ts) they are those of an 80 % interval that was fitted to generated databases (later-weeks.ts); the low
 * end of `at_least` is promised. `savingOf` adds the savings by sizes and by timeouts.
 */

import { MONTH_HOURS } from '../awake/causes.ts';
import { type AwakeHistory, type AwakeInterval, historyFrom } from '../awake/intervals.ts';
import { averageUseCu, awakeMsByHour } from '../awake/usage-while-awake.ts';
import { type Compute, type ComputeSettings, NEVER_SUSPENDS, sameSize } from '../compute/compute.ts';
import { isAtMinimum, maySleep } from '../compute/compute-units.ts';
import { combineEstimates, type Estimate, inOrder, mapEstimate, ZERO } from '../estimate.ts';
import { useInHour } from '../forecast/expected.ts';
import { getOrAdd } from '../grouping.ts';
import { sum } from '../sum.ts';
import { type Span, spanAt } from '../time/span.ts';
import { HOUR_MS, WEEK_MS } from '../time/units.ts';
import type { UsageBucket } from '../usage/usage.ts';
import { LONG_TIMEOUT_SECONDS, savedBySleeping, savedBySleepingSooner } from './long-timeout.ts';
import { suspendedAt } from './other-timeouts.ts';
import { savedByReplay, savedByTimeout } from './timeout.ts';
import { replay, visitsUnder } from './visits.ts';

/** The past of one compute, as far as it is known. */
export interface Evidence {
  compute: Compute;
  /** The settings that it had; where they may have changed, the widest range of them. */
  had: ComputeSettings;
  /** Its usage by the hour, oldest first. */
  hours?: readonly UsageBucket[] | undefined;
  /** When it was awake. */
  history?: AwakeHistory | undefined;
}

/** Settings over time, in order, without gaps. */
export type SettingsOverTime = readonly (ComputeSettings & Span)[];

/** US dollars for a CU-hour at an instant; undefined where the price is unknown. */
export type PriceAt = (atMs: number) => number | undefined;

/** An amount of usage. */
export interface Amount {
  cuSeconds: Estimate;
  /** Undefined where a price is unknown. */
  usd: Estimate | undefined;
}

export interface Saving {
  /** The usage in the hours with known usage; without measurements, the time awake at the minimum size. */
  used: Amount;
  /**
   * The parts of the saving. `bySizes`: by other sizes, minus the cost of never sleeping any more. `byTimeouts`: by other timeouts, or by
   * sleeping at all. Their low ends don't add up to that of `saved`, since a compute that sleeps more has less to save by sizes.
   */
  bySizes: Amount;
  byTimeouts: Amount;
  saved: Amount;
  /** The usage and the saving of a month of 730 h, at the rate of the known time. The usage includes days without known hours. */
  month: { used: Amount; saved: Amount };
  /**
   * How well the effect of timeouts is known. `at_least`: for shorter timeouts. `estimate`: for a compute that never suspends, or only after a
   * long time. `unknown`: if it is not known when the compute was awake.
   */
  timeoutsFigure: 'replayed' | 'at_least' | 'estimate' | 'unknown';
}

export const NOTHING: Amount = { cuSeconds: ZERO, usd: ZERO };

/** The saving of rules against the settings that the compute had; undefined if nothing is known of that time. */
export function savingOf({
  evidence,
  rules,
  priceAt,
}: {
  evidence: Evidence;
  rules: SettingsOverTime;
  priceAt: PriceAt;
}): Saving | undefined {
  const [first, last] = [rules[0], rules.at(-1)];
  if (!first || !last) return undefined;
  const past = pastWithin(evidence, { fromMs: first.fromMs, toMs: last.toMs });
  const { cuHours, figure, includesNever = false } = savedByTimeouts(past, rules);
  const sizes = replayedSizes(past, includesNever ? withTimeout(rules, past.had) : rules, priceAt);
  if (sizes.knownMs === 0) return undefined;
  const months = sizes.knownMs / (MONTH_HOURS * HOUR_MS);
  const price = priceAt(last.toMs - 1);
  const byTimeouts = times(amountOf(scaled(cuHours, 3600), price), months);
  const used = sizes.used;
  const bySizes = whileStillAwake(sizes.amount, used, byTimeouts);
  const together = plus(bySizes, byTimeouts);
  // With less than a week of data, the measured usage does not limit the saving.
  const monthOf = (): Saving['month'] => {
    const { averageCu } = past;
    const measured = averageCu === undefined ? undefined : exactEstimate(averageCu * MONTH_HOURS * 3600);
    const usedInMonth = measured ? amountOf(measured, price) : times(used, 1 / months);
    const saved = times(together, 1 / months);
    const isLimited = measured !== undefined || sizes.knownMs >= WEEK_MS;
    return { used: usedInMonth, saved: isLimited ? atMost(usedInMonth, saved) : saved };
  };
  return {
    used,
    bySizes: { cuSeconds: inOrder(bySizes.cuSeconds), usd: bySizes.usd && inOrder(bySizes.usd) },
    byTimeouts: atMost(used, byTimeouts),
    saved: atMost(used, together),
    timeoutsFigure: figure,
    month: monthOf(),
  };
}

/** A month's usage, as an exact estimate, raised to the savings: with less than a week of data, these may exceed the measured usage. */
export function coveringUse({ used, saved }: Saving['month'], other = saved): Amount {
  const cover = (use: Estimate, ...savings: Estimate[]) =>
    exactEstimate(Math.max(use.mid, ...savings.map(({ high }) => high)));
  return {
    cuSeconds: cover(used.cuSeconds, saved.cuSeconds, other.cuSeconds),
    usd: used.usd && saved.usd && other.usd && cover(used.usd, saved.usd, other.usd),
  };
}

function exactEstimate(value: number): Estimate {
  return { low: value, mid: value, high: value };
}

/**
 * The saving of new rules against old ones, from the savings of both in the same past. Their ends depend on the same unknown facts, so low
 * is compared with low and high with high.
 */
export function savingBetween(before: Amount, after: Amount): Amount {
  const between = (earlier: Estimate, later: Estimate) => inOrder(combineEstimates(later, earlier, (a, b) => a - b));
  return {
    cuSeconds: between(before.cuSeconds, after.cuSeconds),
    usd: before.usd && after.usd && between(before.usd, after.usd),
  };
}

/**
 * The figure of a sum: the first of `estimate`, `at_least` and `unknown` that a part of it has. So a part of which nothing is known does not hide
 * estimates.
 */
export function figureOfSum(figures: readonly Saving['timeoutsFigure'][]): Saving['timeoutsFigure'] {
  return (['estimate', 'at_least', 'unknown'] as const).find((figure) => figures.includes(figure)) ?? 'replayed';
}

export function plus(one: Amount, two: Amount): Amount {
  return combineAmounts(one, two, (a, b) => a + b);
}

function combineAmounts(one: Amount, two: Amount, combine: (a: number, b: number) => number): Amount {
  return {
    cuSeconds: combineEstimates(one.cuSeconds, two.cuSeconds, combine),
    usd: one.usd && two.usd && combineEstimates(one.usd, two.usd, combine),
  };
}

/** The saving by sizes in the time that is left after the saving by timeouts: a compute that sleeps has no size. */
function whileStillAwake(bySizes: Amount, used: Amount, byTimeouts: Amount): Amount {
  const left = combineEstimates(byTimeouts.cuSeconds, used.cuSeconds, (slept, all) =>
    all > 0 ? 1 - Math.min(1, Math.max(0, slept / all)) : 1,
  );
  const ofLeft = (amount: Estimate) => combineEstimates(amount, left, (one, share) => one * share);
  return { cuSeconds: ofLeft(bySizes.cuSeconds), usd: bySizes.usd && ofLeft(bySizes.usd) };
}

/** A saving can't exceed the usage, whatever its parts add up to. */
function atMost(used: Amount, saved: Amount): Amount {
  return combineAmounts(saved, used, Math.min);
}

export function times({ cuSeconds, usd }: Amount, factor: number): Amount {
  return { cuSeconds: scaled(cuSeconds, factor), usd: usd && scaled(usd, factor) };
}

function scaled(estimate: Estimate, factor: number): Estimate {
  return mapEstimate(estimate, (value) => value * factor);
}

function amountOf(cuSeconds: Estimate, price: number | undefined): Amount {
  const amount = { cuSeconds, usd: undefined };
  return price === undefined ? amount : { cuSeconds, usd: times(amount, price / 3600).cuSeconds };
}

/** The part of the past to which the rules apply. Without measurements each awake hour counts at the minimum size. */
function pastWithin({ compute, had, hours, history }: Evidence, span: Span) {
  const { fromMs, toMs } = span;
  const part = history && historyUntil(historyFrom(history, fromMs), toMs);
  // The usage before the last start says nothing about a compute that never suspends.
  const startMs = part ? startByOperations(part) : startByUsage(hours, span);
  const sinceMs = Math.max(fromMs, (maySleep(had) ? part && firstUsed(part) : startMs) ?? fromMs);
  const known = (hours ?? (part ? hoursAtMinimum(part, had.minCu) : [])).flatMap(({ startMs, seconds, cuSeconds }) =>
    seconds === 3600 && cuSeconds !== null && startMs >= sinceMs && startMs < toMs
      ? [{ startMs, seconds, cuSeconds }]
      : [],
  );
  const averageCu = averageUseCu({ history: { fromMs: sinceMs, toMs }, ...(hours && { hours }) });
  return { compute, had, hours: known, history: part && historyFrom(part, sinceMs), span, averageCu };
}

type Past = ReturnType<typeof pastWithin>;

/**
 * If a compute was unused for this share of the known time before its first use, its use has only just begun: only the time since then is
 * typical.
 */
const UNUSED_BEFORE = 2 / 3;
/** The least time for a rate: a week, and the hour in which it begins. */
const LEAST_KNOWN_MS = WEEK_MS + HOUR_MS;

/** When a compute that may sleep began to be used; undefined unless it was unused before for {@link UNUSED_BEFORE} of the known time. */
function firstUsed({ fromMs, toMs, intervals, unknown }: AwakeHistory): number | undefined {
  const first = intervals.find(({ start }) => start !== 'check');
  const hasBegun = first && unknown.length === 0 && first.startMs - fromMs >= UNUSED_BEFORE * (toMs - fromMs);
  return hasBegun ? Math.min(first.startMs, toMs - LEAST_KNOWN_MS) : undefined;
}

/** The end of the hour of the last start, even if the start was on the hour: the known hours must be the same as by {@link startByUsage}. */
function startByOperations({ fromMs, intervals }: AwakeHistory): number | undefined {
  const startMs = intervals.at(-1)?.startMs;
  return startMs === undefined || startMs <= fromMs ? startMs : startMs - (startMs % HOUR_MS) + HOUR_MS;
}

/** The end of the hour in which a compute that never suspends last started: of the first used hour after an unused one. */
function startByUsage(hours: readonly UsageBucket[] = [], { toMs }: Span): number | undefined {
  const before = hours.filter(({ startMs, cuSeconds }) => startMs < toMs && cuSeconds !== null);
  const lastUsed = before.findLastIndex(({ cuSeconds }) => cuSeconds !== 0);
  const unused = before.slice(0, Math.max(0, lastUsed)).findLastIndex(({ cuSeconds }) => cuSeconds === 0);
  const started = unused < 0 ? undefined : before[unused + 1];
  return started && started.startMs + 1000 * started.seconds;
}

/** The part of a history up to an instant. */
function historyUntil(history: AwakeHistory, toMs: number): AwakeHistory {
  if (history.toMs <= toMs) return history;
  const before = <T extends { fromMs: number; toMs: number }>(spans: readonly T[]) =>
    spans.filter(({ fromMs }) => fromMs < toMs).map((one) => ({ ...one, toMs: Math.min(toMs, one.toMs) }));
  const intervals = history.intervals
    .filter(({ startMs }) => startMs < toMs)
    .map((one): AwakeInterval => (one.endMs <= toMs ? one : { ...one, endMs: toMs, end: 'open' }));
  return { ...history, toMs, intervals, unknown: before(history.unknown) };
}

/** The same sizes with the timeout that a compute had. */
function withTimeout(rules: SettingsOverTime, { suspendTimeoutSeconds }: ComputeSettings): SettingsOverTime {
  return rules.map((rule) => ({ ...rule, suspendTimeoutSeconds }));
}

function hoursAtMinimum(history: AwakeHistory, minCu: number): UsageBucket[] {
  const awakeIn = awakeMsByHour(history);
  const hours: UsageBucket[] = [];
  for (let startMs = Math.ceil(history.fromMs / HOUR_MS) * HOUR_MS; startMs < history.toMs; startMs += HOUR_MS) {
    const awakeMs = awakeIn(startMs);
    hours.push({ startMs, seconds: 3600, cuSeconds: awakeMs === undefined ? null : (awakeMs / 1000) * minCu });
  }
  return hours;
}

/** The saving by other sizes, minus the cost of no longer sleeping, over the hours with known usage; and their usage and duration. */
function replayedSizes(past: Past, rules: SettingsOverTime, priceAt: PriceAt) {
  const { hours, history } = past;
  const awakeIn = history && awakeMsByHour(history);
  // The share at the old minimum only matters for a smaller minimum.
  const atMinimum = rules.some(({ minCu }) => minCu < past.had.minCu) ? shareAtMinimum(past, awakeIn) : 0;
  let next = 0;
  let knownMs = 0;
  // An amount is priced once for each price, since there are thousands of hours.
  const byPrice = new Map<number | undefined, { used: number; saved: Estimate }>();
  for (const { startMs, cuSeconds } of hours) {
    while ((rules[next]?.toMs ?? Number.POSITIVE_INFINITY) <= startMs) next += 1;
    const rule = rules[next];
    if (!rule || rule.fromMs > startMs) continue;
    const price = priceAt(startMs);
    knownMs += HOUR_MS;
    const total = getOrAdd(byPrice, price, () => ({ used: 0, saved: { ...ZERO } }));
    total.used += cuSeconds;
    const saved = savedInHour(cuSeconds, past.had, rule, { atMinimum, awakeMs: awakeIn?.(startMs) });
    for (const end of ['low', 'mid', 'high'] as const) total.saved[end] += saved[end];
  }
  let [used, amount] = [NOTHING, NOTHING];
  for (const [price, total] of byPrice) {
    used = plus(used, amountOf(exactEstimate(total.used), price));
    amount = plus(amount, amountOf(total.saved, price));
  }
  return { used, amount, knownMs };
}

/**
 * The share of the used hours in which the compute stayed at its minimum while it was awake. An hour of which the awake time is unknown
 * counts half.
 */
function shareAtMinimum({ hours, had }: Past, awakeIn: ((startMs: number) => number | undefined) | undefined): number {
  const used = hours.filter(({ cuSeconds }) => cuSeconds > 0);
  const shares = used.map(({ startMs, cuSeconds }): number => {
    const awakeMs = maySleep(had) ? awakeIn?.(startMs) : HOUR_MS;
    const isFlat = isAtMinimum(cuSeconds, had.minCu, (awakeMs ?? HOUR_MS) / 1000);
    return isFlat && awakeMs === undefined ? 0.5 : Number(isFlat);
  });
  return sum(shares) / Math.max(1, shares.length);
}

/**
 * The saving by size in one hour, in CU-seconds. The more hours were at the minimum, the less work the compute had, and the more a smaller
 * minimum saves.
 */
function savedInHour(
  cuSeconds: number,
  had: ComputeSettings,
  rule: ComputeSettings,
  { atMinimum, awakeMs }: { atMinimum: number; awakeMs: number | undefined },
): Estimate {
  if (sameSize(had, rule) && maySleep(had) === maySleep(rule)) return ZERO;
  const used = useInHour(cuSeconds / 3600, had, rule, awakeMs === undefined ? undefined : awakeMs / HOUR_MS);
  const [low, high] = [cuSeconds - used.high * 3600, cuSeconds - used.low * 3600];
  // A smaller maximum alone only saves where peaks reached the old one, which usage does not show.
  return { low, mid: rule.minCu < had.minCu ? low + atMinimum * (high - low) : low, high };
}

interface SavedByTimeouts {
  cuHours: Estimate;
  figure: Saving['timeoutsFigure'];
  /** True if the figure already includes the effect of "never": what sleeping at all saves, or what never sleeping costs. */
  includesNever?: boolean;
}

/**
 * The saving by timeouts in a month, in CU-hours. A compute that waits for its timeout has no clients, so the minimum sizes count: that of the
 * settings it had for time that it no longer waits, and that of the rules for additional time.
 */
function savedByTimeouts(past: Past, rules: SettingsOverTime): SavedByTimeouts {
  const { had, history } = past;
  if (rules.every((rule) => timeoutOf(rule) === timeoutOf(had))) return { cuHours: ZERO, figure: 'replayed' };
  if (!maySleep(had)) return { cuHours: savedBySleep(past, rules), figure: 'estimate', includesNever: true };
  if (!needsAwakeTimes(had, rules)) return { cuHours: ZERO, figure: 'replayed' };
  if (!history) return { cuHours: ZERO, figure: 'unknown' };
  const sleeping = rules.filter(maySleep);
  const hadSeconds = had.suspendTimeoutSeconds;
  const seconds = (sleeping[0] ?? had).suspendTimeoutSeconds;
  const isConstant = rules.every((rule) => timeoutOf(rule) === seconds);
  if (isConstant && seconds < hadSeconds && hadSeconds >= LONG_TIMEOUT_SECONDS) {
    const facts = { ...past, compute: { ...past.compute, ...had }, history };
    return { cuHours: savedBySleepingSooner(facts, seconds), figure: 'estimate' };
  }
  const saved = isConstant
    ? savedByTimeout(history, { hadSeconds, seconds })
    : replayedRules(history, hadSeconds, rules);
  if (!saved) return { cuHours: ZERO, figure: 'unknown' };
  const hoursOf = (ms: number) => (ms * (ms < 0 ? meanMinCu(sleeping) : had.minCu) * MONTH_HOURS) / saved.knownMs;
  return { cuHours: mapEstimate(saved.savedMs, hoursOf), figure: saved.figure, includesNever: !isConstant };
}

/** True if what rules save depends on when the compute was awake: they have other timeouts, and it may sleep. */
export function needsAwakeTimes(had: ComputeSettings, rules: SettingsOverTime): boolean {
  return maySleep(had) && rules.some(maySleep) && rules.some((rule) => timeoutOf(rule) !== timeoutOf(had));
}

/** The timeout in effect; -1 where the compute never suspends, for whatever reason. */
function timeoutOf(rule: ComputeSettings): number {
  return maySleep(rule) ? rule.suspendTimeoutSeconds : NEVER_SUSPENDS;
}

function meanMinCu(rules: SettingsOverTime): number {
  const ms = sum(rules.map(({ fromMs, toMs }) => toMs - fromMs));
  return sum(rules.map(({ fromMs, toMs, minCu }) => minCu * (toMs - fromMs))) / Math.max(1, ms);
}

/** The saving of a compute that never suspended, in CU-hours a month, estimated from its usage in the hours in which rules let it sleep. */
function savedBySleep({ compute, had, hours, history, span }: Past, rules: SettingsOverTime): Estimate {
  const sleeping = rules.filter(maySleep);
  const sleepingMs = sum(sleeping.map(({ fromMs, toMs }) => toMs - fromMs));
  const share = sleepingMs / Math.max(1, span.toMs - span.fromMs);
  const facts = {
    compute: { ...compute, ...had },
    history: history ?? { ...span, intervals: [], unknown: [span], startDurationsMs: [] },
    hours: hours.filter(({ startMs }) => spanAt(sleeping, startMs) !== undefined),
  };
  return scaled(savedBySleeping(facts), share);
}

/** Replays rules whose timeout changes with time: each suspend happens when the rules would have allowed it. */
function replayedRules(history: AwakeHistory, hadSeconds: number, rules: SettingsOverTime) {
  const visits = visitsUnder(history, hadSeconds);
  if (!visits || visits.knownMs <= 0) return undefined;
  const now = replay(visits, visits.timeoutMs);
  const byRules = replay(visits, (lastActiveMs) => suspendedAt(rules, lastActiveMs));
  const isShorter = rules.some((rule) => maySleep(rule) && rule.suspendTimeoutSeconds < hadSeconds);
  const figure = isShorter ? ('at_least' as const) : ('replayed' as const);
  return { ...savedByReplay(now, byRules.days), knownMs: visits.knownMs, figure };
}
