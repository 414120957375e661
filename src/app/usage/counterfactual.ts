/**
 * The saving that enforcing would have made while ebb only observed: measured hours, replayed with the settings that policies wanted at
 * the time.
 */

import { chunksOf } from '../../common/chunks.ts';
import type { AwakeHistory } from '../../domain/awake/intervals.ts';
import { type Compute, settingsOf } from '../../domain/compute/compute.ts';
import { useInHour } from '../../domain/forecast/expected.ts';
import { forecastFleet } from '../../domain/forecast/forecast.ts';
import type { Segment } from '../../domain/forecast/walk.ts';
import type { CompiledPolicies } from '../../domain/policy/compiled-policies.ts';
import { replayTimeouts, type TimeoutEffect } from '../../domain/recommend/other-timeouts.ts';
import { visitsUnder } from '../../domain/recommend/visits.ts';
import { HOUR_MS } from '../../domain/time/units.ts';
import { HOURS_KEPT, seriesOf } from '../../domain/usage/stored.ts';
import { type UsageBucket, type UsageUnit, unitName } from '../../domain/usage/usage.ts';
import type { UsageReader } from './usage-account.ts';

const COMPUTES_AT_ONCE = 100;

/**
 * The counterfactual of an owner's computes, from the first to the last hour that is known of them. Negative: policies would have cost
 * more.
 */
export interface Counterfactual {
  owner: string;
  computes: number;
  /** CU-seconds that were used, and the saving in them. */
  used: number;
  saved: { low: number; high: number };
  /** By sizes alone, and by timeouts alone: together they save no more than was used. */
  bySizes: { low: number; high: number };
  byTimeouts: { low: number; high: number };
  /**
   * `at_least`: there are shorter timeouts, of which only the low end is promised; `unknown`: of no compute it is known when it was awake.
   */
  timeoutsFigure: 'replayed' | 'at_least' | 'unknown';
  /** The same in US dollars; undefined where a price is not known. */
  savedUsd: { low: number; high: number } | undefined;
}

/**
 * By owner, over the stored hours (two weeks): sizes are replayed; a compute that never slept may have slept from all to none of the time
 * at its minimum. Timeouts are replayed as far as it is known when a compute was awake. Computes whose usage can't be separated from that
 * of others are left out.
 */
export async function counterfactualOf(options: {
  kept: UsageReader;
  computes: readonly Compute[];
  policies: CompiledPolicies;
  /** When a compute was awake; undefined if unknown. */
  historyOf?: (compute: Compute) => AwakeHistory | undefined;
  untilMs: number;
  ownerOf: (unit: UsageUnit) => string;
  priceAt: (startMs: number) => number | undefined;
}): Promise<Counterfactual[]> {
  const { kept, policies, historyOf, untilMs, ownerOf, priceAt } = options;
  const fromMs = untilMs - HOURS_KEPT * HOUR_MS;
  const owners = new Map<string, Counterfactual>();
  const measured = unitsOf(options.computes, new Set((await kept.units()).map(unitName)));
  for (const some of chunksOf(measured, COMPUTES_AT_ONCE)) {
    const usage = await kept.read(some.map(({ unit }) => unit));
    const forecasts = forecastFleet({
      policies,
      subjects: some.map(({ compute }) => ({ compute })),
      fromMs,
      toMs: untilMs,
    });
    for (const [index, { compute, unit }] of some.entries()) {
      const own = usage[index];
      if (!own) continue;
      const owner = ownerOf(unit);
      const sum = owners.get(owner) ?? { ...NOTHING, owner };
      const hours = seriesOf(own).buckets.filter(({ seconds, startMs }) => seconds === 3600 && startMs >= fromMs);
      const segments = forecasts[index]?.segments ?? [];
      const past = { hours, had: settingsOf(compute), segments, history: historyOf?.(compute), priceAt, fromMs };
      owners.set(owner, added(sum, past));
    }
  }
  return [...owners.values()].sort((a, b) => b.saved.high - a.saved.high);
}

const ZERO = { low: 0, high: 0 };
const NOTHING: Omit<Counterfactual, 'owner'> = {
  ...{ computes: 0, used: 0, saved: ZERO, bySizes: ZERO, byTimeouts: ZERO },
  ...{ timeoutsFigure: 'unknown', savedUsd: ZERO },
};

interface Past {
  hours: readonly UsageBucket[];
  had: ReturnType<typeof settingsOf>;
  segments: readonly Segment[];
  history: AwakeHistory | undefined;
  fromMs: number;
  priceAt: (startMs: number) => number | undefined;
}

/** CU-seconds and dollars. */
interface Amount {
  low: number;
  high: number;
  usd: { low: number; high: number } | undefined;
}

/** A compute more. */
function added(sum: Counterfactual, past: Past): Counterfactual {
  const { used, usedUsd, ...bySizes } = replayedSizes(past);
  const byTimeouts = replayedTimeouts(past);
  const { usd } = byTimeouts ?? NONE;
  const figures = [sum.timeoutsFigure, byTimeouts?.figure ?? 'unknown'];
  return {
    ...{ owner: sum.owner, computes: sum.computes + 1, used: sum.used + used },
    saved: plus(sum.saved, atMost(used, plus(bySizes, byTimeouts ?? ZERO))),
    bySizes: plus(sum.bySizes, bySizes),
    byTimeouts: plus(sum.byTimeouts, atMost(used, byTimeouts ?? ZERO)),
    timeoutsFigure: (['at_least', 'replayed'] as const).find((figure) => figures.includes(figure)) ?? 'unknown',
    savedUsd: sum.savedUsd && bySizes.usd && usd && plus(sum.savedUsd, atMost(usedUsd, plus(bySizes.usd, usd))),
  };
}

/** A saving can't exceed the usage, whatever its parts add up to. */
function atMost(used: number, { low, high }: { low: number; high: number }) {
  return { low: Math.min(low, used), high: Math.min(high, used) };
}

const NONE: Amount = { ...ZERO, usd: ZERO };

function plus(one: { low: number; high: number }, two: { low: number; high: number }) {
  return { low: one.low + two.low, high: one.high + two.high };
}

/** The saving by the sizes of policies over the known hours, and the usage of these hours. */
function replayedSizes({ hours, had, segments, priceAt }: Past): Amount & { used: number; usedUsd: number } {
  let next = 0;
  let [used, usedUsd] = [0, 0];
  let sum: Amount = NONE;
  for (const { startMs, cuSeconds } of hours) {
    while ((segments[next]?.toMs ?? Number.POSITIVE_INFINITY) <= startMs) next += 1;
    const segment = segments[next];
    if (cuSeconds === null || !segment || segment.fromMs > startMs) continue;
    const would = useInHour(cuSeconds / 3600, had, segment);
    const price = priceAt(startMs);
    used += cuSeconds;
    usedUsd += (cuSeconds / 3600) * (price ?? 0);
    sum = more(sum, { low: cuSeconds - would.high * 3600, high: cuSeconds - would.low * 3600 }, price);
  }
  return { ...sum, used, usedUsd };
}

/** The further saving by their timeouts, at the smallest size: a compute that waits for its timeout is idle. */
function replayedTimeouts({ had, segments, history, fromMs, priceAt }: Past) {
  const { suspendTimeoutSeconds } = had;
  const visits = history && visitsUnder(history, suspendTimeoutSeconds);
  if (!history || !visits) return undefined;
  const span = { fromMs: visits.fromMs, toMs: Number.POSITIVE_INFINITY, suspendTimeoutSeconds };
  const effects = replayTimeouts({ ...history, intervals: [...visits.intervals] }, [span], segments);
  const amountOf = (figure: TimeoutEffect['figure']) =>
    effects.reduce<Amount>((sum, { atMs, savedMs, ...effect }) => {
      const segment = segments.find((one) => one.fromMs <= atMs && atMs < one.toMs);
      if (effect.figure !== figure || !segment || atMs < fromMs) return sum;
      const cuSeconds = (ms: number) => (ms / 1000) * segment.minCu;
      return more(sum, { low: cuSeconds(savedMs.low), high: cuSeconds(savedMs.high) }, priceAt(atMs));
    }, NONE);
  const [longer, shorter] = [amountOf('replayed'), amountOf('at_least')];
  // Nothing is promised where more starts could cost more than the earlier suspends save.
  const promised = (low: number) => Math.max(0, low);
  return {
    ...plus(longer, { ...shorter, low: promised(shorter.low) }),
    usd: longer.usd && shorter.usd && plus(longer.usd, { ...shorter.usd, low: promised(shorter.usd.low) }),
    figure: shorter.high === 0 ? ('replayed' as const) : ('at_least' as const),
  };
}

function more({ usd, ...sum }: Amount, saved: { low: number; high: number }, price: number | undefined): Amount {
  if (!usd || price === undefined) return { ...plus(sum, saved), usd: undefined };
  const dollars = { low: (saved.low / 3600) * price, high: (saved.high / 3600) * price };
  return { ...plus(sum, saved), usd: plus(usd, dollars) };
}

/** Computes that are alone on a branch, or in a project, whose usage is kept. */
function unitsOf(computes: readonly Compute[], kept: ReadonlySet<string>): { compute: Compute; unit: UsageUnit }[] {
  const counts = new Map<string, number>();
  const namesOf = ({ projectId, branchId }: Compute): UsageUnit[] => [
    { projectId, branchId },
    { projectId, branchId: null },
  ];
  for (const unit of computes.flatMap(namesOf)) counts.set(unitName(unit), (counts.get(unitName(unit)) ?? 0) + 1);
  return computes.flatMap((compute) => {
    const unit = namesOf(compute).find((one) => kept.has(unitName(one)) && counts.get(unitName(one)) === 1);
    return unit ? [{ compute, unit }] : [];
  });
}
