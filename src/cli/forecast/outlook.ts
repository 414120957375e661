import { spansOf } from '../../app/usage/budget-store.ts';
import { type Compute, settingsOf } from '../../domain/compute/compute.ts';
import type { CuSeconds, Prices } from '../../domain/compute/cost.ts';
import type { ForecastSubject } from '../../domain/forecast/compute-groups.ts';
import { type Estimate, expectedCuHours, widestSettings } from '../../domain/forecast/expected.ts';
import { type Forecast, type ForecastRange, forecastFleet, unchangedCuHours } from '../../domain/forecast/forecast.ts';
import { holdBack, type LateChange, limitsRestarts } from '../../domain/forecast/hold-back.ts';
import { type CompiledPolicies, withBudgetSteps } from '../../domain/policy/compiled-policies.ts';
import type { PartialDisruption } from '../../domain/policy/disruption.ts';
import type { BudgetOutlook } from '../../domain/spend/state.ts';
import { type Account, accountFor } from '../../settings/accounts.ts';
import { type KnownHerd, withHerdWaves } from './herd-waves.ts';
import type { UsageProfiles } from './known-usage.ts';

/** The forecast of a compute, and the forecast without ebb. */
export interface Outlook extends Forecast {
  compute: Compute;
  /** CU-hours with the baseline. */
  without: CuSeconds;
  /** CU-hours if its clients come as they did before; null where its usage is not known. An estimate. */
  expected: Estimate | null;
  /** US dollars for a CU-hour; absent where the account's plan is unknown. */
  price?: number;
  /** Changes that `at_most` holds back. */
  late?: readonly LateChange[];
}

export interface Pricing {
  accounts: readonly Account[];
  prices: Prices;
}

/** The policies with the leader's decisions: active steps of budgets, and the waves of `ready: true`. */
export function withLeaderDecisions(
  policies: CompiledPolicies,
  { budgets, ...herd }: KnownHerd & { budgets: readonly Pick<BudgetOutlook, 'spans'>[] },
): CompiledPolicies {
  return withHerdWaves(withBudgetSteps(policies, spansOf(budgets)), herd);
}

interface ForeseeInput extends ForecastRange {
  policies: CompiledPolicies;
  subjects: readonly ForecastSubject[];
  /** All computes, of which a policy may restart a share; the subjects if absent. */
  fleet?: readonly ForecastSubject[];
  /** Of the settings. */
  disruption?: PartialDisruption | undefined;
  pricing: Pricing;
  profiles?: UsageProfiles;
}

/** The forecasts of computes, in their order. */
export function foresee(input: ForeseeInput): Outlook[] {
  const { subjects, pricing, profiles = new Map(), fromMs, toMs } = input;
  return forecastsOf(input).map((forecast, index): Outlook => {
    const { compute, baseline } = subjects[index] as ForecastSubject;
    const price = priceFor(compute, pricing);
    // A disabled compute can't be woken by anyone.
    const profile = compute.disabled ? undefined : profiles.get(compute.computeId);
    const had = widestSettings(settingsOf(compute), baseline ?? settingsOf(compute));
    const before = { ...(baseline ?? settingsOf(compute)), disabled: compute.disabled };
    return {
      ...forecast,
      compute,
      without: unchangedCuHours(before, { fromMs, toMs }),
      expected: profile ? expectedCuHours(forecast.segments, profile, had) : null,
      ...(price !== undefined && { price }),
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

function priceFor({ account }: Compute, { accounts, prices }: Pricing): number | undefined {
  const plan = accountFor(accounts, account)?.plan;
  return plan === undefined ? undefined : prices[plan];
}
