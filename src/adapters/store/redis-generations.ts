import { MOST_AHEAD_MS } from '../../domain/overrides/instants-ahead.ts';
import type { RedisEngine } from '../../ports/engine.ts';
import type { Store } from '../../ports/store.ts';
import type { RunScript } from './redis-scripts.ts';
import { sharedAsk } from './shared-ask.ts';

/**
 * KEYS: generation. ARGV: hash of the set. Gives the number. A new one is the time, or one more than the last: it grows even if
 * the last one was lost with a flushed Redis.
 */
const RAISE = `
local last = redis.call('HMGET', KEYS[1], 'number', 'hash')
if last[2] == ARGV[1] then return last[1] end
local time = redis.call('TIME')
local number = math.max(time[1] * 1000 + math.floor(time[2] / 1000), tonumber(last[1] or '0') + 1)
local text = string.format('%.0f', number)
redis.call('HSET', KEYS[1], 'number', text, 'hash', ARGV[1])
return text
`;

/** KEYS: generation. ARGV: number, hash. Gives the current number. */
const RESTORE = `
local last = redis.call('HGET', KEYS[1], 'number')
if last and tonumber(last) >= tonumber(ARGV[1]) then return last end
redis.call('HSET', KEYS[1], 'number', ARGV[1], 'hash', ARGV[2])
return ARGV[1]
`;

/** KEYS: slots of the policy by their end. ARGV: compute, allowed, now, end. Gives 1 if the compute holds one. */
const TAKE_SLOT = `
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[3])
redis.call('ZREMRANGEBYSCORE', KEYS[1], tonumber(ARGV[4]) + ${MOST_AHEAD_MS}, '+inf')
local held = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not held and redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then return 0 end
redis.call('ZADD', KEYS[1], ARGV[4], ARGV[1])
local last = redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')
redis.call('PEXPIRE', KEYS[1], math.ceil(math.max(0, tonumber(last[2]) - tonumber(ARGV[3]))) + ${24 * 3_600_000})
return 1
`;

type GenerationsAndSlots = Pick<
  Store,
  'raiseGeneration' | 'restoreGeneration' | 'generation' | 'takeSlot' | 'releaseSlot' | 'slotsInUse'
>;

export function generationKeyOf(prefix: string): string {
  return `${prefix}:store:generation`;
}

export function createRedisGenerations(options: { engine: RedisEngine; run: RunScript }): GenerationsAndSlots {
  const { engine, run } = options;
  const { commands: redis, prefix } = engine;
  const generationKey = generationKeyOf(prefix);
  const slotsKey = (policy: string) => `${prefix}:store:slots:${policy}`;

  return {
    raiseGeneration: async (setHash) => Number(await run(RAISE, [generationKey], [setHash])),
    restoreGeneration: async ({ number, setHash }) => Number(await run(RESTORE, [generationKey], [number, setHash])),
    generation: sharedAsk(async () => {
      const [number, setHash] = await redis.hmget(generationKey, 'number', 'hash');
      return number && setHash ? { number: Number(number), setHash } : undefined;
    }),
    takeSlot: async ({ policy, computeId, allowed, nowMs, untilMs }) =>
      (await run(TAKE_SLOT, [slotsKey(policy)], [computeId, allowed, nowMs, untilMs])) === 1,
    releaseSlot: async (policy, computeId) => {
      await redis.zrem(slotsKey(policy), computeId);
    },
    slotsInUse: async (policy, nowMs) => (await redis.zrangebyscore(slotsKey(policy), `(${nowMs}`, '+inf')).sort(),
  };
}
