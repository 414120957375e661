/** What an account has subscribed to; it decides what a CU-hour costs. */
export const ACCOUNT_PLANS = ['free', 'launch', 'scale'] as const;
export type AccountPlan = (typeof ACCOUNT_PLANS)[number];

/** US dollars for a CU-hour, by plan. */
export type Prices = Readonly<Record<AccountPlan, number>>;

/** The vendor's prices as of 2026-11. */
export const DEFAULT_PRICES: Prices = { free: 0, launch: 0.106, scale: 0.222 };
