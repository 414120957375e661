import { z } from 'zod';
import { ACCOUNT_PLANS, DEFAULT_PRICES } from '../domain/compute/account-plan.ts';
import { oneOf } from './schema-parts.ts';

/** `plan` of `ebb.yaml`. */
export const planSchema = oneOf(ACCOUNT_PLANS);

const DOLLARS = 'must be US dollars for a CU-hour, such as 0.106';
const price = z.number({ error: DOLLARS }).min(0, { error: DOLLARS }).max(1000, { error: DOLLARS });

/** `prices` of `ebb.yaml`; a plan that it leaves out costs what it costs by default. */
export const pricesSchema = z.strictObject(
  {
    free: price.default(DEFAULT_PRICES.free),
    launch: price.default(DEFAULT_PRICES.launch),
    scale: price.default(DEFAULT_PRICES.scale),
  },
  { error: 'must be a price for each plan: {launch: 0.106, scale: 0.222}' },
);
