import type { RedisEngine } from '../../ports/engine.ts';
import type { UsageStore } from '../../ports/store.ts';

/** How many units one round trip carries: 3 KB each. */
const UNITS_AT_ONCE = 300;

/** A hash for each account: unit → bytes. */
export function createRedisUsage({ commands: redis, prefix }: RedisEngine): UsageStore {
  const keyOf = (account: string) => `${prefix}:store:usage:${account}`;
  return {
    usageUnits: async (account) => (await redis.hkeys(keyOf(account))).sort(),
    usage: async (account, units) => {
      const found = new Map<string, Uint8Array>();
      for (let at = 0; at < units.length; at += UNITS_AT_ONCE) {
        const chunk = units.slice(at, at + UNITS_AT_ONCE);
        const values = await redis.hmgetBuffer(keyOf(account), ...chunk);
        values.forEach((value, index) => {
          const unit = chunk[index];
          if (value !== null && unit !== undefined) found.set(unit, value);
        });
      }
      return found;
    },
    putUsage: async (account, usage) => {
      const entries = [...usage];
      for (let at = 0; at < entries.length; at += UNITS_AT_ONCE) {
        const fields = entries.slice(at, at + UNITS_AT_ONCE).map(([unit, bytes]) => [unit, Buffer.from(bytes)]);
        await redis.hset(keyOf(account), ...fields.flat());
      }
    },
    deleteUsage: async (account, units) => {
      for (let at = 0; at < units.length; at += UNITS_AT_ONCE) {
        await redis.hdel(keyOf(account), ...units.slice(at, at + UNITS_AT_ONCE));
      }
    },
  };
}
