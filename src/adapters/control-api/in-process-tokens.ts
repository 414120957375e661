import type { TokenSource } from './rate-budget.ts';
import { type Bucket, type BucketState, FULL_BUCKET, slowDown, takeTokens } from './token-bucket.ts';

/** Buckets of this process alone: right where one daemon has the account to itself. */
export function createInProcessTokens(options: { bucket: Bucket }): TokenSource {
  const { bucket } = options;
  const states = new Map<string, BucketState>();
  const stateOf = (account: string) => states.get(account) ?? FULL_BUCKET;
  return {
    async take(account, wanted) {
      const { state, ...granted } = takeTokens(bucket, stateOf(account), performance.now(), wanted);
      states.set(account, state);
      return granted;
    },
    async slowDown(account, pauseMs) {
      states.set(account, slowDown(bucket, stateOf(account), performance.now(), pauseMs));
    },
  };
}
