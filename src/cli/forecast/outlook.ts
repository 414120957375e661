import { spansOf } from '../../app/usage/budget-store.ts';
import { type Compute, type ComputeSettings, settingsOf } from '../../domain/compute/compute.ts';
import type { AccountPlan, CuSeconds, Prices } from '../../domain/compute/cost.ts';
import { withoutTrials } from '../../domain/decide/control-group.ts';
import type { Estimate } from '../../domain/estimate.ts';
import type { ForecastSubject } from '../../domain/forecast/compute-groups.ts';
import { expectedCuHours, type UsageProfile, widestSettings } from '../../domain/forecast/expected.ts';
import { type Forecast, type ForecastRange, forecastFleet, unchangedCuHours } from '../../domain/forecast/forecast.ts';
import { holdBack, type LateChange, limitsRestarts } from '../../domain/forecast/hold-back.ts';
import { type CompiledPolicies, compilePolicies, withBudgetSteps } from '../../domain/policy/compiled-policies.ts';
import type { PartialDisruption } from '../../domain/policy/disruption.ts';
import { type Rules, type Saving, savingOf } from '../../domain/recommend/saving.ts';
import { settingsHad } from '../../domain/recommend/settings-had.ts';
import type { BudgetOutlook } from '../../domain/spend/state.ts';
import type { Span } from '../../domain/time/span.ts';
import { DAY_MS, HOUR_MS } from '../../domain/time/units.ts';
import { latest } from '../../domain/time/windows/opening.ts';
import { type Account, accountFor } from '../../settings/accounts.ts';
import { type FleetWavesInput, withFleetWaves } from './fleet-waves.ts';
import { SAVING_DAYS, type UsageHistories, type UsageHistory } from './usage-history.ts';

export interface Outlook extends Forecast {
  compute: Compute;
  /** CU-hours with the baseline. */
  without: CuSeconds;
  /** The usage of the last weeks; absent if too little of it is known. */
  profile?: UsageProfile;
  /** The widest settings that the compute may have had while it was measured. */
  had: ComputeSettings;
  /** A month under these policies against the measured one; absent without usage. */
  month?: Month;
  /** The past, and the settings that policies would have given then. */
  past?: PastRules;
  /** US dollars for a CU-hour; absent if the account's plan is unknown. */
  price?: number;
  /** Changes that `at_most` holds back. */
  late?: readonly LateChange[];
}

/** CU-hours with the clients of the last weeks; null without usage. */
export function expectedOf({ segments, profile, had }: Outlook): Estimate | null {
  return profile ? expectedCuHours(segments, profile, had) : null;
}

export const hoursWithEbb = ({ cuHours }: Outlook) => cuHours;
export const hoursWithoutEbb = ({ without }: Outlook) => without;

export interface Pricing {
  accounts: readonly Account[];
  prices: Prices;
  /** The plans of accounts without one in the settings. */
  plans?: ReadonlyMap<string, AccountPlan>;
}

/** The policies with the leader's decisions: active steps of budgets, and the waves of `ready: true`. */
export function withLeaderDecisions(
  policies: CompiledPolicies,
  { budgets, ...fleet }: FleetWavesInput & { budgets: readonly Pick<BudgetOutlook, 'spans'>[] },
): CompiledPolicies {
  return withFleetWaves(withBudgetSteps(policies, spansOf(budgets)), fleet);
}

export interface ForeseeInput extends ForecastRange {
  policies: CompiledPolicies;
  subjects: readonly ForecastSubject[];
  /** The fleet against which shares such as `at_most` are computed; the subjects by default. */
  fleet?: readonly ForecastSubject[];
  disruption?: PartialDisruption | undefined;
  pricing: Pricing;
  usages?: UsageHistories;
  /** The end of the past if no usage is known, for operations that the caller reads later. Milliseconds since the epoch. */
  pastEndMs?: number | undefined;
}

/** In the order of the subjects. */
export function foresee(input: ForeseeInput): Outlook[] {
  const { subjects, pricing, usages = new Map(), fromMs, toMs } = input;
  const rules = pastRules(input);
  return forecastsOf(input).map((forecast, index): Outlook => {
    const { compute, baseline } = subjects[index] as ForecastSubject;
    const price = priceFor(compute, pricing);
    // A disabled compute can't be woken by anyone.
    const known = compute.disabled ? undefined : usages.get(compute.computeId);
    const had = widestSettings(settingsOf(compute), baseline ?? settingsOf(compute));
    const own = rules[index];
    const past = own && !compute.disabled ? { ...known, ...own } : undefined;
    const month = past && monthOf({ compute, ...(price !== undefined && { price }) }, past);
    const before = { ...(baseline ?? settingsOf(compute)), disabled: compute.disabled };
    return {
      ...forecast,
      compute,
      had,
      without: unchangedCuHours(before, { fromMs, toMs }),
      ...(known?.profile && { profile: known.profile }),
      ...(past && { past }),
      ...(month && { month }),
      ...(price !== undefined && { price }),
    };
  });
}

/** A month of 730 h. */
export type Month = Saving['month'] & Pick<Saving, 'timeoutsFigure'>;

/** What is known of a time in which a compute had the same settings, and what policies would have given it then. */
interface PastRules extends UsageHistory {
  had: ComputeSettings;
  rules: Rules;
}

function monthOf(
  { compute, price }: Pick<Outlook, 'compute' | 'price'>,
  { had, hours, history, rules }: PastRules,
): Month | undefined {
  const saving = savingOf({ evidence: { compute, had, hours, history }, rules, priceAt: () => price });
  return saving && { ...saving.month, timeoutsFigure: saving.timeoutsFigure };
}

export function withPast(outlook: Outlook, past: PastRules): Outlook {
  const month = monthOf(outlook, past);
  return { ...outlook, past, ...(month && { month }) };
}

/** The last weeks up to the newest usage; without usage up to the newest operation, without operations up to `endMs`. */
function pastSpan(usages: UsageHistories, endMs: number | undefined): Span | undefined {
  const known = [...usages.values()];
  const usedHourMs = latest(known, ({ hours = [] }) => hours.at(-1)?.startMs);
  const loggedUntilMs = latest(known, ({ history }) => history?.toMs);
  const toMs = usedHourMs === undefined ? (loggedUntilMs ?? endMs) : usedHourMs + HOUR_MS;
  return toMs === undefined ? undefined : { fromMs: toMs - SAVING_DAYS * DAY_MS, toMs };
}

/** The settings that policies would have given in the last weeks, without holds, trials and steps of budgets, which are temporary. */
function pastRules({
  policies,
  subjects,
  usages = new Map(),
  pastEndMs,
}: ForeseeInput): Pick<PastRules, 'had' | 'rules'>[] {
  const past = pastSpan(usages, pastEndMs);
  if (!past) return [];
  const own = subjects.map(({ compute, baseline }) => ({ compute, baseline }));
  const lasting = compilePolicies(withoutTrials(policies.set));
  const forecasts = forecastFleet({ ...past, policies: lasting, subjects: own });
  return subjects.map((subject, index) => settingsHad(subject, forecasts[index]?.segments ?? []));
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

function priceFor({ account }: Compute, { accounts, prices, plans }: Pricing): number | undefined {
  const plan = accountFor(accounts, account)?.plan ?? plans?.get(account);
  return plan === undefined ? undefined : prices[plan];
}
