import { type ComputeSettings, type ComputeState, NEVER_SUSPENDS, type Size } from './compute.ts';
import { maySleep } from './compute-units.ts';

/**
 * CU-seconds as a range: the control API does not report the size that autoscaling chose, so an awake compute uses at
 * least its minimum and at most its maximum.
 */
export interface CuSeconds {
  low: number;
  high: number;
}

/** CU-seconds of a compute of this size that is awake for this many seconds. */
export function cuSeconds(size: Size, awakeSeconds: number): CuSeconds {
  return { low: size.minCu * awakeSeconds, high: size.maxCu * awakeSeconds };
}

/** The same in CU-hours, the unit that is billed. */
export function cuHours(use: CuSeconds): CuSeconds {
  return { low: use.low / 3600, high: use.high / 3600 };
}

/**
 * CU-seconds of a compute with these settings over this many seconds, with its sleep unknown: from none to all of them awake; all of them
 * where it never suspends.
 */
export function foreseenCuSeconds(settings: ComputeSettings, seconds: number): CuSeconds {
  return { low: maySleep(settings) ? 0 : settings.minCu * seconds, high: settings.maxCu * seconds };
}

/**
 * The saving over `seconds` against the baseline; negative where ebb gave more. A sleeping compute counts as saved only if its baseline
 * never suspends: else it would sleep as well.
 */
export function savedCuSeconds(
  baseline: ComputeSettings,
  now: Size & { state: ComputeState },
  seconds: number,
): CuSeconds {
  const awake = now.state !== 'idle';
  const wouldBeAwake = awake || baseline.suspendTimeoutSeconds === NEVER_SUSPENDS;
  const without = cuSeconds(baseline, wouldBeAwake ? seconds : 0);
  const withEbb = cuSeconds(now, awake ? seconds : 0);
  return { low: without.low - withEbb.low, high: without.high - withEbb.high };
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
export function formatUsdRange({ low, high }: { low: number; high: number }): string {
  return joinRange(formatUsd(low), formatUsd(high));
}

/** Both ends of a range as one text, the unit only once where no end is negative. */
export function joinRange(low: string, high: string): string {
  if (low === high) return low;
  return low.startsWith('-') ? `${low} to ${high}` : `${low}–${high.replace('$', '')}`;
}
