import { type Estimate, mapRange, type Range, savingOrCost } from '../estimate.ts';
import type { ComputeSettings, ComputeState, Size } from './compute.ts';
import { maySleep } from './compute-units.ts';

/**
 * A range of CU-seconds. The control API does not report the size that autoscaling chose, so an awake compute uses at least its minimum
 * and at most its maximum.
 */
export type CuSeconds = Range;

/** The CU-seconds of a compute that is awake for `awakeSeconds`. */
export function cuSeconds(size: Size, awakeSeconds: number): CuSeconds {
  return { low: size.minCu * awakeSeconds, high: size.maxCu * awakeSeconds };
}

/** Converts CU-seconds to CU-hours, the billed unit. */
export function cuHours(use: CuSeconds): Range {
  return mapRange(use, (seconds) => seconds / 3600);
}

/** The possible CU-seconds of a compute over `seconds` if it is unknown when it sleeps. A compute that never sleeps uses at least its minimum. */
export function possibleCuSeconds(settings: ComputeSettings, seconds: number): CuSeconds {
  return { low: maySleep(settings) ? 0 : settings.minCu * seconds, high: settings.maxCu * seconds };
}

/**
 * The saving over `seconds` against the baseline; negative where ebb gave more. Sleep counts as a saving only if the baseline never suspends:
 * otherwise the compute would have slept without ebb, too.
 */
export function savedCuSeconds(
  baseline: ComputeSettings,
  now: Size & { state: ComputeState },
  seconds: number,
): CuSeconds {
  const isAwake = now.state !== 'idle';
  const wouldBeAwake = isAwake || !maySleep(baseline);
  const withoutEbb = cuSeconds(baseline, wouldBeAwake ? seconds : 0);
  const withEbb = cuSeconds(now, isAwake ? seconds : 0);
  return { low: withoutEbb.low - withEbb.low, high: withoutEbb.high - withEbb.high };
}

/** The plan of an account, which decides the price of a CU-hour. */
export const ACCOUNT_PLANS = ['free', 'launch', 'scale'] as const;
export type AccountPlan = (typeof ACCOUNT_PLANS)[number];

/** US dollars for a CU-hour, by plan. */
export type Prices = Readonly<Record<AccountPlan, number>>;

/** The vendor's prices as of 2026-11. */
export const DEFAULT_PRICES: Prices = { free: 0, launch: 0.106, scale: 0.222 };

/** US dollars as people read them: `$1,234.50`, `-$0.08`. */
export function formatUsd(usd: number): string {
  return usd.toLocaleString('en', { style: 'currency', currency: 'USD', signDisplay: 'negative' });
}

/** `$1.33–17.81`, `-$0.08 to $0.20`. */
export function formatUsdRange({ low, high }: Range): string {
  return joinRange(formatUsd(low), formatUsd(high));
}

/**
 * Formats the middle of an estimate and its range: `$12.00 ($8.00–15.00)`. If the low end is zero and the middle is one of the ends: `up to
 * $15.00`.
 */
export function formatEstimate({ low, mid, high }: Estimate, format: (value: number) => string = formatUsd): string {
  const [shownLow, shown, shownHigh] = [format(low), format(mid), format(high)];
  if (shownLow === format(0) && shownLow !== shownHigh && [shownLow, shownHigh].includes(shown))
    return `up to ${shownHigh}`;
  const range = joinRange(shownLow, shownHigh);
  return range === shown ? range : `${shown} (${range})`;
}

/** A saving as {@link formatEstimate}, or `costs $12.00 ($8.00–15.00)` if it is negative. */
export function formatSaving(saving: Estimate, format: (value: number) => string = formatUsd): string {
  const { isCost, ...amount } = savingOrCost(saving);
  return `${isCost ? 'costs ' : ''}${formatEstimate(amount, format)}`;
}

/** Joins the ends of a range. The currency sign is written once if no end is negative. */
export function joinRange(low: string, high: string): string {
  if (low === high) return low;
  return low.startsWith('-') ? `${low} to ${high}` : `${low}–${high.replace('$', '')}`;
}
