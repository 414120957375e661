import { createHash } from 'node:crypto';
import type { RedisEngine } from '../../ports/engine.ts';
import type { TokenSource } from './rate-budget.ts';
import {
  type Bucket,
  DEFAULT_PAUSE_MS,
  FORGIVEN_AFTER_MS,
  type Granted,
  LONGEST_PAUSE_MS,
  MAX_SLOWDOWNS,
  SAME_EVENT_MS,
} from './token-bucket.ts';

/**
 * `takeTokens` and `slowDown` of token-bucket.ts as one atomic step each, by Redis' own clock; the contract suite of token
 * sources holds the two together. KEYS: the account's bucket. ARGV: capacity, interval in ms, tokens
 * wanted or pause in ms.
 */
const READ = `
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local stored = redis.call('HMGET', KEYS[1], 'full_at_ms', 'slowdowns', 'slowed_at_ms')
local full_at = tonumber(stored[1] or '0')
local slowdowns = tonumber(stored[2] or '0')
local slowed_at = tonumber(stored[3] or '0')
local capacity = tonumber(ARGV[1])
local active = math.max(0, slowdowns - math.floor((now - slowed_at) / ${FORGIVEN_AFTER_MS}))
local function interval(halvings) return tonumber(ARGV[2]) * 2 ^ halvings end
local function believable(step) return math.min(full_at, now + ${LONGEST_PAUSE_MS} + capacity * step) end
local function write()
  redis.call('HSET', KEYS[1], 'full_at_ms', string.format('%.3f', full_at),
    'slowdowns', slowdowns, 'slowed_at_ms', string.format('%.3f', slowed_at))
  redis.call('PEXPIRE', KEYS[1], math.ceil(math.max(0, full_at - now)) + ${FORGIVEN_AFTER_MS * (MAX_SLOWDOWNS + 1)})
end
`;

const TAKE = `${READ}
local step = interval(active)
local from = math.max(believable(step), now)
local there = math.floor((now - from) / step + capacity)
local tokens = math.max(1, math.min(tonumber(ARGV[3]), there))
full_at = from + tokens * step
write()
return {tokens, string.format('%.3f', math.max(0, full_at - capacity * step - now))}
`;

const SLOW_DOWN = `${READ}
local same = slowdowns > 0 and now - slowed_at < ${SAME_EVENT_MS}
slowdowns = same and active or math.min(${MAX_SLOWDOWNS}, active + 1)
if not same then slowed_at = now end
local step = interval(slowdowns)
full_at = math.max(believable(step), now + math.min(tonumber(ARGV[3]), ${LONGEST_PAUSE_MS}) + (capacity - 1) * step)
write()
return '0'
`;

/** Buckets in Redis, shared by all daemons of a group. Rejects while Redis is away. */
export function createRedisTokens(options: { engine: RedisEngine; bucket: Bucket }): TokenSource {
  const { engine, bucket } = options;
  const run = (script: string, account: string, more: number[]) =>
    runScript(engine, script, `${engine.prefix}:api-budget:${account}`, [bucket.capacity, bucket.intervalMs, ...more]);
  return {
    async take(account, wanted): Promise<Granted> {
      const [tokens, waitMs] = (await run(TAKE, account, [wanted])) as [number, string];
      return { tokens, waitMs: Number(waitMs) };
    },
    slowDown: async (account, pauseMs = DEFAULT_PAUSE_MS) => void (await run(SLOW_DOWN, account, [pauseMs])),
  };
}

/** Runs a script by its hash, and sends its text only when Redis doesn't know it (yet, or any more). */
async function runScript({ commands }: RedisEngine, text: string, key: string, args: number[]): Promise<unknown> {
  try {
    return await commands.evalsha(createHash('sha1').update(text).digest('hex'), 1, key, ...args);
  } catch (error) {
    if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error;
    return commands.eval(text, 1, key, ...args);
  }
}
