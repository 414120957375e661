/** Calculates what policies would have saved in the last weeks. */
import type { Compute, ComputeSettings } from '../../domain/compute/compute.ts';
import type { AccountPlan, Prices } from '../../domain/compute/cost.ts';
import { lastingPolicies } from '../../domain/decide/control-group.ts';
import type { ForecastSubject } from '../../domain/forecast/compute-groups.ts';
import { forecastFleet } from '../../domain/forecast/forecast.ts';
import type { CompiledPolicies } from '../../domain/policy/compiled-policies.ts';
import { type Saving, type SettingsOverTime, savingOf } from '../../domain/recommend/saving.ts';
import { settingsHad } from '../../domain/recommend/settings-had.ts';
import type { Span } from '../../domain/time/span.ts';
import { DAY_MS, HOUR_MS } from '../../domain/time/units.ts';
import { latest } from '../../domain/time/windows/opening.ts';
import { type Account, accountFor } from '../../settings/accounts.ts';
import { SAVING_DAYS, type UsageHistories, type UsageHistory } from './usage-history.ts';

export interface PastOutlook {
  compute: Compute;
  /** The past, and the settings that policies would have given then. */
  past?: PastRules;
  /** US dollars a CU-hour; absent if the account's plan is unknown. */
  price?: number;
  /** The measured usage of a month, and what these policies save of it; undefined without usage. Calculated at the first call. */
  month(): Month | undefined;
}

export interface Pricing {
  accounts: readonly Account[];
  prices: Prices;
  /** The plans of accounts without one in the settings. */
  plans?: ReadonlyMap<string, AccountPlan>;
}

export interface LookBackInput {
  policies: CompiledPolicies;
  subjects: readonly ForecastSubject[];
  pricing: Pricing;
  usages?: UsageHistories;
  /** The past ends here if no usage is known, in milliseconds since the epoch. Given if its operations are read later. */
  pastEndMs?: number | undefined;
}

/** The past of the computes under these policies, in the order of the subjects. */
export function lookBack(input: LookBackInput): PastOutlook[] {
  const { subjects, pricing, usages = new Map() } = input;
  const rules = pastRules(input);
  return subjects.map(({ compute }, index) => {
    const price = priceFor(compute, pricing);
    const own = rules[index];
    // Nobody can wake a disabled compute.
    const past = own && !compute.disabled ? { ...usages.get(compute.computeId), ...own } : undefined;
    return withMonth({ compute, ...(past && { past }), ...(price !== undefined && { price }) });
  });
}

/** A month of 730 h. */
type Month = Saving['month'] & Pick<Saving, 'timeoutsFigure'>;

/** The past of a compute: its settings then (`had`), and those that the policies would have given it (`rules`). */
interface PastRules extends UsageHistory {
  had: ComputeSettings;
  rules: SettingsOverTime;
}

function withMonth<O extends Omit<PastOutlook, 'month'>>(outlook: O): O & PastOutlook {
  let calculated: { month: Month | undefined } | undefined;
  return {
    ...outlook,
    month() {
      calculated ??= { month: monthOf(outlook) };
      return calculated.month;
    },
  };
}

function monthOf({ compute, price, past }: Omit<PastOutlook, 'month'>): Month | undefined {
  if (!past) return undefined;
  const { had, hours, history, rules } = past;
  const saving = savingOf({ evidence: { compute, had, hours, history }, rules, priceAt: () => price });
  return saving && { ...saving.month, timeoutsFigure: saving.timeoutsFigure };
}

/** Replaces the past of an outlook. */
export function withPast<O extends PastOutlook>(outlook: O, past: PastRules): O {
  return withMonth({ ...outlook, past });
}

/** The last weeks up to the newest usage, otherwise up to the newest operation, otherwise up to `endMs`. */
function pastSpan(usages: UsageHistories, endMs: number | undefined): Span | undefined {
  const known = [...usages.values()];
  const usedHourMs = latest(known, ({ hours = [] }) => hours.at(-1)?.startMs);
  const loggedUntilMs = latest(known, ({ history }) => history?.toMs);
  const toMs = usedHourMs === undefined ? (loggedUntilMs ?? endMs) : usedHourMs + HOUR_MS;
  return toMs === undefined ? undefined : { fromMs: toMs - SAVING_DAYS * DAY_MS, toMs };
}

/** The settings that policies would have given in the last weeks, without holds. */
function pastRules(input: LookBackInput): Pick<PastRules, 'had' | 'rules'>[] {
  const { policies, subjects, usages = new Map() } = input;
  const past = pastSpan(usages, input.pastEndMs);
  if (!past) return [];
  const own = subjects.map(({ compute, baseline }) => ({ compute, baseline }));
  const forecasts = forecastFleet({ ...past, policies: lastingPolicies(policies), subjects: own });
  return subjects.map((subject, index) => settingsHad(subject, forecasts[index]?.segments ?? []));
}

function priceFor({ account }: Compute, { accounts, prices, plans }: Pricing): number | undefined {
  const plan = accountFor(accounts, account)?.plan ?? plans?.get(account);
  return plan === undefined ? undefined : prices[plan];
}
