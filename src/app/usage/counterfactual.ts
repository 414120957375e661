/** What enforcing would have saved while ebb only observed: the measured hours, replayed under what policies wanted at the time. */
import { type Compute, settingsOf } from '../../domain/compute/compute.ts';
import { useInHour } from '../../domain/forecast/expected.ts';
import { forecastFleet } from '../../domain/forecast/forecast.ts';
import type { Segment } from '../../domain/forecast/walk.ts';
import type { CompiledPolicies } from '../../domain/policy/compiled-policies.ts';
import { HOURS_KEPT, seriesOf } from '../../domain/usage/stored.ts';
import { type UsageBucket, type UsageUnit, unitName } from '../../domain/usage/usage.ts';
import type { UsageReader } from './usage-account.ts';

const HOUR_MS = 3_600_000;
const COMPUTES_AT_ONCE = 100;

/** Of the computes of an owner, from the first to the last hour that is known of them. Negative: policies would have cost more. */
export interface Counterfactual {
  owner: string;
  computes: number;
  /** CU-seconds that were used, and that would have been saved of them. */
  used: number;
  saved: { low: number; high: number };
  /** The same in US dollars; undefined where a price is not known. */
  savedUsd: { low: number; high: number } | undefined;
}

/**
 * By owner, over the hours that are kept (two weeks): sizes are replayed, and a compute that never slept may have slept from all the time in
 * which it was at its minimum to none of it. What shorter timeouts would have saved besides is not in it. Computes whose usage can't be told
 * from that of others are left out.
 */
export async function counterfactualOf(options: {
  kept: UsageReader;
  computes: readonly Compute[];
  policies: CompiledPolicies;
  untilMs: number;
  ownerOf: (unit: UsageUnit) => string;
  priceAt: (startMs: number) => number | undefined;
}): Promise<Counterfactual[]> {
  const { kept, policies, untilMs, ownerOf, priceAt } = options;
  const fromMs = untilMs - HOURS_KEPT * HOUR_MS;
  const owners = new Map<string, Counterfactual>();
  const measured = unitsOf(options.computes, new Set((await kept.units()).map(unitName)));
  for (let at = 0; at < measured.length; at += COMPUTES_AT_ONCE) {
    const some = measured.slice(at, at + COMPUTES_AT_ONCE);
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
      const sum = owners.get(owner) ?? { owner, computes: 0, used: 0, saved: ZERO, savedUsd: ZERO };
      const hours = seriesOf(own).buckets.filter(({ seconds, startMs }) => seconds === 3600 && startMs >= fromMs);
      owners.set(
        owner,
        replayed(sum, { hours, had: settingsOf(compute), segments: forecasts[index]?.segments ?? [], priceAt }),
      );
    }
  }
  return [...owners.values()].sort((a, b) => b.saved.high - a.saved.high);
}

const ZERO = { low: 0, high: 0 };

interface Past {
  hours: readonly UsageBucket[];
  had: ReturnType<typeof settingsOf>;
  segments: readonly Segment[];
  priceAt: (startMs: number) => number | undefined;
}

function replayed(sum: Counterfactual, { hours, had, segments, priceAt }: Past): Counterfactual {
  let next = 0;
  let { used, saved, savedUsd } = sum;
  for (const { startMs, cuSeconds } of hours) {
    while ((segments[next]?.toMs ?? Number.POSITIVE_INFINITY) <= startMs) next += 1;
    const segment = segments[next];
    if (cuSeconds === null || !segment || segment.fromMs > startMs) continue;
    const would = useInHour(cuSeconds / 3600, had, segment);
    const [low, high] = [cuSeconds - would.high * 3600, cuSeconds - would.low * 3600];
    const price = priceAt(startMs);
    used += cuSeconds;
    saved = { low: saved.low + low, high: saved.high + high };
    savedUsd =
      savedUsd && price !== undefined
        ? { low: savedUsd.low + (low / 3600) * price, high: savedUsd.high + (high / 3600) * price }
        : undefined;
  }
  return { ...sum, computes: sum.computes + 1, used, saved, savedUsd };
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
