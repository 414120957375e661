/**
 * The saving that enforcing would have made while ebb only observed: measured hours, replayed with the settings that policies wanted at
 * the time.
 */

import { chunksOf } from '../../common/chunks.ts';
import type { AwakeHistory } from '../../domain/awake/intervals.ts';
import { type Compute, settingsOf } from '../../domain/compute/compute.ts';
import { forecastFleet } from '../../domain/forecast/forecast.ts';
import type { CompiledPolicies } from '../../domain/policy/compiled-policies.ts';
import { NOTHING, plus, type Saving, savingOf, weakestFigure } from '../../domain/recommend/saving.ts';
import { HOUR_MS } from '../../domain/time/units.ts';
import { HOURS_KEPT, seriesOf } from '../../domain/usage/stored.ts';
import { type UsageUnit, unitName } from '../../domain/usage/usage.ts';
import type { UsageReader } from './usage-account.ts';

const COMPUTES_AT_ONCE = 100;

/**
 * The counterfactual of an owner's computes, from the first to the last hour that is known of them. Negative: policies would have cost
 * more.
 */
export interface Counterfactual extends Pick<Saving, 'used' | 'saved' | 'bySizes' | 'byTimeouts' | 'timeoutsFigure'> {
  owner: string;
  computes: number;
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
      const evidence = {
        compute,
        had: settingsOf(compute),
        hours: seriesOf(own).buckets,
        history: historyOf?.(compute),
      };
      const saving = savingOf({ evidence, rules: forecasts[index]?.segments ?? [], priceAt });
      owners.set(owner, added(owners.get(owner) ?? { ...NONE, owner }, saving));
    }
  }
  return [...owners.values()].sort((a, b) => b.saved.cuSeconds.high - a.saved.cuSeconds.high);
}

const NONE: Omit<Counterfactual, 'owner'> = {
  computes: 0,
  used: NOTHING,
  saved: NOTHING,
  bySizes: NOTHING,
  byTimeouts: NOTHING,
  timeoutsFigure: 'replayed',
};

/** With the saving of one more compute; unchanged if no hour of it is known. */
function added(total: Counterfactual, saving: Saving | undefined): Counterfactual {
  const computes = total.computes + 1;
  if (!saving) return total;
  const figures = [total.timeoutsFigure, saving.timeoutsFigure];
  return {
    owner: total.owner,
    computes,
    used: plus(total.used, saving.used),
    saved: plus(total.saved, saving.saved),
    bySizes: plus(total.bySizes, saving.bySizes),
    byTimeouts: plus(total.byTimeouts, saving.byTimeouts),
    timeoutsFigure: weakestFigure(figures),
  };
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
