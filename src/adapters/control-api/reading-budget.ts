import type { RateBudget } from '../../ports/rate-budget.ts';
import { createInProcessTokens } from './in-process-tokens.ts';
import { createRateBudget, type TokenSource } from './rate-budget.ts';
import { type Bucket, bucketFor, DEFAULT_RATE_LIMITS, type RateLimits } from './token-bucket.ts';

/** The share of a minute's limit that goes without delay: two requests for each project of a fleet of fifty. */
const SHARE_AT_ONCE = 1 / 7;

/** But not all in one second: a daemon keeps three quarters of what a second allows. */
const IN_A_ROW = 5;

/** The share of the limits that is taken in the long run. */
const SHARE = 1 / 4;

/**
 * For a command that reads beside daemons that it knows nothing of. In the long run it takes a quarter of the account's limit:
 * a daemon at rest uses a tenth, so both have room, and one that is busy finds at most one request in four taken. Less would
 * make a person wait for a quarter of an hour before a thousand projects are read. With `alone`, as on a platform on this
 * machine, it may use the whole limit.
 */
export function createReadingBudget(options: { alone: boolean; limits?: Partial<RateLimits> }): RateBudget {
  const limits = { ...DEFAULT_RATE_LIMITS, ...options.limits };
  const { perMinute, perRouteSecond } = limits;
  const tokens = options.alone
    ? createInProcessTokens({ bucket: bucketFor(limits) })
    : bothOf(
        { capacity: Math.ceil(perMinute * SHARE_AT_ONCE), intervalMs: 60_000 / (perMinute * SHARE) },
        { capacity: IN_A_ROW, intervalMs: 1000 / (perRouteSecond * SHARE) },
      );
  return createRateBudget({ tokens, perMinute });
}

/** A token is to be had when both buckets have one. */
function bothOf(...buckets: readonly Bucket[]): TokenSource {
  const sources = buckets.map((bucket) => createInProcessTokens({ bucket }));
  return {
    async take(account) {
      // One at a time: what one bucket gives must not be more than the other has.
      const granted = await Promise.all(sources.map((source) => source.take(account, 1)));
      return { tokens: 1, waitMs: Math.max(...granted.map(({ waitMs }) => waitMs)) };
    },
    async slowDown(account, pauseMs) {
      await Promise.all(sources.map((source) => source.slowDown(account, pauseMs)));
    },
  };
}
