import type { Engine } from '../../ports/engine.ts';
import type { RateBudget } from '../../ports/rate-budget.ts';
import { createInProcessTokens } from './in-process-tokens.ts';
import { createPostgresTokens } from './postgres-tokens.ts';
import { createRateBudget, type TokenSource } from './rate-budget.ts';
import { createRedisTokens } from './redis-tokens.ts';
import { type Bucket, bucketFor, DEFAULT_RATE_LIMITS, type RateLimits } from './token-bucket.ts';

/** While nobody knows what the others use, each daemon takes so small a part that this many stay within the limit. */
const DAEMONS_WITHOUT_ENGINE = 4;

/**
 * The budget that all daemons of a group share through their engine. An embedded engine has one daemon, so its budget is in this
 * process. While the engine is away reading goes on, at a fourth of the rate (nothing is written then: a store that can't be
 * asked gives no lease).
 */
export async function createGroupBudget(options: {
  engine: Engine;
  limits?: Partial<RateLimits>;
}): Promise<RateBudget> {
  const { engine } = options;
  const limits = { ...DEFAULT_RATE_LIMITS, ...options.limits };
  return createRateBudget({ tokens: await tokensOn(engine, bucketFor(limits)), perMinute: limits.perMinute });
}

async function tokensOn(engine: Engine, bucket: Bucket): Promise<TokenSource> {
  if (engine.kind === 'redis') return withFallback(createRedisTokens({ engine, bucket }), bucket);
  if (engine.name === 'embedded') return createInProcessTokens({ bucket });
  return withFallback(await createPostgresTokens({ engine, bucket }), bucket);
}

function withFallback(shared: TokenSource, bucket: Bucket): TokenSource {
  const alone = createInProcessTokens({
    bucket: { capacity: 1, intervalMs: bucket.intervalMs * DAEMONS_WITHOUT_ENGINE },
  });
  return {
    take: (account, wanted) => shared.take(account, wanted).catch(() => alone.take(account, wanted)),
    async slowDown(account, pauseMs) {
      await alone.slowDown(account, pauseMs);
      await shared.slowDown(account, pauseMs).catch(() => {});
    },
  };
}
