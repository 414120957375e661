import type { RateBudget } from '../../ports/rate-budget.ts';
import { createInProcessTokens } from './in-process-tokens.ts';
import { createRateBudget, type TokenSource } from './rate-budget.ts';
import { type Bucket, bucketFor, DEFAULT_RATE_LIMITS } from './token-bucket.ts';

/** So many requests go without delay: two for each project of a fleet of fifty. */
const AT_ONCE: Bucket = { capacity: 100, intervalMs: 60_000 / (DEFAULT_RATE_LIMITS.perMinute / 4) };

/** Even those are spread, so that a daemon keeps three quarters of what a second allows. */
const PER_SECOND: Bucket = { capacity: 5, intervalMs: 1000 / (DEFAULT_RATE_LIMITS.perRouteSecond / 4) };

/**
 * For a command that reads beside daemons that it knows nothing of. In the long run it takes a quarter of the account's limit:
 * a daemon at rest uses a tenth, so both have room, and one that is busy finds at most one request in four taken. Less would
 * make a person wait for a quarter of an hour before a thousand projects are read. With `alone`, as on a platform on this
 * machine, it may use the whole limit.
 */
export function createReadingBudget({ alone }: { alone: boolean }): RateBudget {
  const limits = DEFAULT_RATE_LIMITS;
  const tokens = alone ? createInProcessTokens({ bucket: bucketFor(limits) }) : bothOf(AT_ONCE, PER_SECOND);
  return createRateBudget({ tokens, perMinute: limits.perMinute });
}

/** A token is to be had when both buckets have one. */
function bothOf(...buckets: readonly Bucket[]): TokenSource {
  const sources = buckets.map((bucket) => createInProcessTokens({ bucket }));
  return {
    async take(account) {
      return Math.max(...(await Promise.all(sources.map((source) => source.take(account)))));
    },
    async slowDown(account, pauseMs) {
      await Promise.all(sources.map((source) => source.slowDown(account, pauseMs)));
    },
  };
}
