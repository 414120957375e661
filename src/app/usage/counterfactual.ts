/** The saving that enforcing would have made while ebb only observed, by replaying measured hours with the settings of policies. */

import { chunksOf } from '../../common/chunks.ts';
import type { AwakeHistory } from '../../domain/awake/intervals.ts';
import { type Compute, settingsOf } from '../../domain/compute/compute.ts';
import { forecastFleet } from '../../domain/forecast/forecast.ts';
import { countBy } from '../../domain/grouping.ts';
import type { CompiledPolicies } from '../../domain/policy/compiled-policies.ts';
import { figureOfSum, NOTHING, plus, type Saving, savingOf } from '../../domain/recommend/saving.ts';
import { HOUR_MS } from '../../domain/time/units.ts';
import { HOURS_KEPT, seriesOf } from '../../domain/usage/stored.ts';
import { type UsageUnit, unitName } from '../../domain/usage/usage.ts';
import type { UsageReader } from './usage-account.ts';

const COMPUTES_AT_ONCE = 100;

/** The counterfactual of an owner's computes over their known hours. Negative if policies would have cost more. */
export interface Counterfactual extends Pick<Saving, 'used' | 'saved' | 'bySizes' | 'byTimeouts' | 'timeoutsFigure'> {
  owner: string;
  computes: number;
}

/**
 * Computes the counterfactual by owner, over the stored hours (two weeks). Timeouts are replayed for the time in which the compute's awake
 * history is known; for a compute that never suspends, their effect is estimated. Leaves out computes that share a unit of usage.
 */
export async function counterfactualOf(options: {
  stored: UsageReader;
  computes: readonly Compute[];
  policies: CompiledPolicies;
  /** The times a compute was awake; undefined if unknown. */
  historyOf?: (compute: Compute) => AwakeHistory | undefined;
  untilMs: number;
  ownerOf: (unit: UsageUnit) => string;
  priceAt: (startMs: number) => number | undefined;
}): Promise<Counterfactual[]> {
  const { stored, policies, historyOf, untilMs, ownerOf, priceAt } = options;
  const fromMs = untilMs - HOURS_KEPT * HOUR_MS;
  const owners = new Map<string, Counterfactual>();
  const measured = unitsOf(options.computes, new Set((await stored.units()).map(unitName)));
  for (const chunk of chunksOf(measured, COMPUTES_AT_ONCE)) {
    const usage = await stored.read(chunk.map(({ unit }) => unit));
    const forecasts = forecastFleet({
      policies,
      subjects: chunk.map(({ compute }) => ({ compute })),
      fromMs,
      toMs: untilMs,
    });
    for (const [index, { compute, unit }] of chunk.entries()) {
      const unitUsage = usage[index];
      if (!unitUsage) continue;
      const owner = ownerOf(unit);
      const evidence = {
        compute,
        had: settingsOf(compute),
        hours: seriesOf(unitUsage).buckets,
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

/** Adds the saving of one more compute, if any hour of it is known. */
function added(total: Counterfactual, saving: Saving | undefined): Counterfactual {
  if (!saving) return total;
  return {
    owner: total.owner,
    computes: total.computes + 1,
    used: plus(total.used, saving.used),
    saved: plus(total.saved, saving.saved),
    bySizes: plus(total.bySizes, saving.bySizes),
    byTimeouts: plus(total.byTimeouts, saving.byTimeouts),
    timeoutsFigure: figureOfSum([total.timeoutsFigure, saving.timeoutsFigure]),
  };
}

/** Finds the stored unit that a compute shares with no other: its branch, or else its project. Computes without such a unit are left out. */
function unitsOf(computes: readonly Compute[], stored: ReadonlySet<string>): { compute: Compute; unit: UsageUnit }[] {
  const unitsWith = ({ projectId, branchId }: Compute): UsageUnit[] => [
    { projectId, branchId },
    { projectId, branchId: null },
  ];
  const counts = countBy(computes.flatMap(unitsWith), unitName);
  return computes.flatMap((compute) => {
    const unit = unitsWith(compute).find((one) => stored.has(unitName(one)) && counts.get(unitName(one)) === 1);
    return unit ? [{ compute, unit }] : [];
  });
}
