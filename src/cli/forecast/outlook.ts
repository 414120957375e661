import { spansOf } from '../../app/usage/budget-store.ts';
import { type ComputeSettings, settingsOf } from '../../domain/compute/compute.ts';
import type { Estimate, Range } from '../../domain/estimate.ts';
import type { ForecastSubject } from '../../domain/forecast/compute-groups.ts';
import { expectedCuHours, type UsageProfile, widestSettings } from '../../domain/forecast/expected.ts';
import { type Forecast, type ForecastRange, forecastFleet, unchangedCuHours } from '../../domain/forecast/forecast.ts';
import { type DelayedChange, holdBack, limitsRestarts } from '../../domain/forecast/hold-back.ts';
import { type CompiledPolicies, withBudgetSteps } from '../../domain/policy/compiled-policies.ts';
import type { PartialDisruption } from '../../domain/policy/disruption.ts';
import type { BudgetOutlook } from '../../domain/spend/state.ts';
import { type FleetWavesInput, withFleetWaves } from './fleet-waves.ts';
import { type LookBackInput, lookBack, type PastOutlook } from './past-outlook.ts';

export interface Outlook extends PastOutlook, Forecast {
  /** The usage if the compute kept its baseline, without ebb, in CU-hours. */
  without: Range;
  /** The usage of the last weeks; absent if too little of it is known. */
  profile?: UsageProfile;
  /** The widest settings that the compute may have had while it was measured. */
  had: ComputeSettings;
  /** Changes that `at_most` holds back. */
  late?: readonly DelayedChange[];
}

/** CU-hours with the clients of the last weeks; null without usage. */
export function expectedOf({ segments, profile, had }: Outlook): Estimate | null {
  return profile ? expectedCuHours(segments, profile, had) : null;
}

export const hoursWithEbb = ({ cuHours }: Outlook) => cuHours;
export const hoursWithoutEbb = ({ without }: Outlook) => without;

/** The policies with the leader's decisions: active steps of budgets, and the waves of `ready: true`. */
export function withLeaderDecisions(
  policies: CompiledPolicies,
  { budgets, ...fleet }: FleetWavesInput & { budgets: readonly Pick<BudgetOutlook, 'spans'>[] },
): CompiledPolicies {
  return withFleetWaves(withBudgetSteps(policies, spansOf(budgets)), fleet);
}

interface ForeseeInput extends ForecastRange, LookBackInput {
  /** The fleet against which shares such as `at_most` are computed; the subjects by default. */
  fleet?: readonly ForecastSubject[];
  disruption?: PartialDisruption | undefined;
}

/** The forecasts and the past of the computes, in the order of the subjects. */
export function foresee(input: ForeseeInput): Outlook[] {
  const { subjects, usages = new Map(), fromMs, toMs } = input;
  const pasts = lookBack(input);
  return forecastsOf(input).map((forecast, index): Outlook => {
    const { compute, baseline } = subjects[index] as ForecastSubject;
    // Nobody can wake a disabled compute.
    const profile = compute.disabled ? undefined : usages.get(compute.computeId)?.profile;
    const before = { ...(baseline ?? settingsOf(compute)), disabled: compute.disabled };
    return {
      ...forecast,
      ...(pasts[index] as PastOutlook),
      had: widestSettings(settingsOf(compute), baseline ?? settingsOf(compute)),
      without: unchangedCuHours(before, { fromMs, toMs }),
      ...(profile && { profile }),
    };
  });
}

function forecastsOf(input: ForeseeInput): (Forecast & Pick<Outlook, 'late'>)[] {
  const { policies, subjects, fleet = subjects, disruption, toMs } = input;
  if (!limitsRestarts(policies, disruption)) return forecastFleet(input);
  const forecasts = holdBack(forecastFleet({ ...input, subjects: fleet }), {
    policies,
    subjects: fleet,
    disruption,
    toMs,
  });
  const byId = new Map(fleet.map(({ compute }, index) => [compute.computeId, forecasts[index]]));
  return subjects.flatMap(({ compute }) => byId.get(compute.computeId) ?? []);
}
