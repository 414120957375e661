import { type Compute, settingsOf } from '../../domain/compute/compute.ts';
import type { CuSeconds, Prices } from '../../domain/compute/cost.ts';
import type { ForecastSubject } from '../../domain/forecast/alike.ts';
import { type Asked, type Forecast, forecastFleet, unchangedUse } from '../../domain/forecast/forecast.ts';
import type { CompiledPolicies } from '../../domain/policy/compiled-policies.ts';
import { type Account, accountFor } from '../../settings/accounts.ts';

/** What is foreseen for a compute, and what would be if ebb had never touched it. */
export interface Outlook extends Forecast {
  compute: Compute;
  /** CU-hours with the baseline. */
  without: CuSeconds;
  /** US dollars for a CU-hour; absent where nobody said which plan the account has. */
  price?: number;
}

export interface Pricing {
  accounts: readonly Account[];
  prices: Prices;
}

/** What is foreseen for computes, in their order. */
export function foresee(
  input: Asked & { policies: CompiledPolicies; subjects: readonly ForecastSubject[]; pricing: Pricing },
): Outlook[] {
  const { subjects, pricing, fromMs, toMs } = input;
  return forecastFleet(input).map((forecast, index): Outlook => {
    const { compute, baseline } = subjects[index] as ForecastSubject;
    const price = priceFor(compute, pricing);
    const before = { ...(baseline ?? settingsOf(compute)), disabled: compute.disabled };
    return {
      ...forecast,
      compute,
      without: unchangedUse(before, { fromMs, toMs }),
      ...(price !== undefined && { price }),
    };
  });
}

function priceFor({ account }: Compute, { accounts, prices }: Pricing): number | undefined {
  const plan = accountFor(accounts, account)?.plan;
  return plan === undefined ? undefined : prices[plan];
}
