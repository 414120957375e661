import { chunksOf } from '../../common/chunks.ts';
import { AUDIT_KINDS, type HistoryEntry } from '../../domain/records/history.ts';
import { type RedisEngine, runScript } from '../../ports/engine.ts';
import type { HistoryStore } from '../../ports/store.ts';
import { historyToJson, newestFirst, readHistory, readSamples, samplesToJson } from './history-json.ts';
import type { StoreLimits } from './limits.ts';
import type { RedisAudit } from './redis-audit.ts';

/**
 * KEYS: entries of the compute, computes by their last entry, number of all entries. ARGV: compute, time of the last entry, maximum numbers
 * of entries of a compute and in all, key prefix of entries, lifetime of an entry in ms, entries. The compute with the oldest last entry
 * makes room. Of computes with only expired entries, up to ten are removed each time. A timestamp in the future doesn't make others expire.
 */
const APPEND = `
local added = #ARGV - 6
for at = 7, #ARGV do redis.call('LPUSH', KEYS[1], ARGV[at]) end
local over = redis.call('LLEN', KEYS[1]) - tonumber(ARGV[3])
if over > 0 then
  redis.call('LTRIM', KEYS[1], 0, ARGV[3] - 1)
  added = added - over
end
local time = redis.call('TIME')
local oldestAt = math.min(tonumber(ARGV[2]), time[1] * 1000 + math.floor(time[2] / 1000)) - tonumber(ARGV[6])
local function isOld(text)
  local known, entry = pcall(cjson.decode, text)
  return known and type(entry) == 'table' and type(entry.atMs) == 'number' and entry.atMs < oldestAt
end
local oldest = redis.call('LINDEX', KEYS[1], -1)
while oldest and isOld(oldest) do
  redis.call('RPOP', KEYS[1])
  added = added - 1
  oldest = redis.call('LINDEX', KEYS[1], -1)
end
redis.call('ZADD', KEYS[2], 'GT', ARGV[2], ARGV[1])
local total = redis.call('INCRBY', KEYS[3], added)
for _, quiet in ipairs(redis.call('ZRANGE', KEYS[2], '-inf', '(' .. string.format('%.0f', oldestAt), 'BYSCORE', 'LIMIT', 0, 10)) do
  total = total - redis.call('LLEN', ARGV[5] .. quiet)
  redis.call('DEL', ARGV[5] .. quiet)
  redis.call('ZREM', KEYS[2], quiet)
end
while total > tonumber(ARGV[4]) do
  local quiet = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
  if not quiet then total = 0 break end
  if redis.call('RPOP', ARGV[5] .. quiet) then total = total - 1 end
  if redis.call('EXISTS', ARGV[5] .. quiet) == 0 then redis.call('ZREM', KEYS[2], quiet) end
end
redis.call('SET', KEYS[3], total)
return total
`;

/** Lists read in one round trip. */
const LISTS_AT_ONCE = 200;

export function createRedisHistory(options: {
  engine: RedisEngine;
  limits: StoreLimits;
  audit: RedisAudit;
}): HistoryStore {
  const { engine, limits, audit } = options;
  const { commands: redis, prefix } = engine;
  const entriesPrefix = `${prefix}:store:history:of:`;
  const computesKey = `${prefix}:store:history:computes`;
  const totalKey = `${prefix}:store:history:total`;
  const samplesKey = samplesKeyOf(prefix);

  async function textsOf(computeIds: readonly string[], limit: number): Promise<string[]> {
    const texts: string[] = [];
    for (const chunk of chunksOf(computeIds, LISTS_AT_ONCE)) {
      const lists = await Promise.all(chunk.map((id) => redis.lrange(entriesPrefix + id, 0, limit - 1)));
      texts.push(...lists.flat());
    }
    return texts;
  }

  async function append(computeId: string, entries: readonly HistoryEntry[]): Promise<void> {
    const lastAtMs = Math.max(...entries.map(({ atMs }) => atMs));
    const texts = entries.map((entry) => historyToJson(entry, limits.historyEntryBytes));
    const { historyPerCompute, history, historyMs } = limits;
    const args = [computeId, lastAtMs, historyPerCompute, history, entriesPrefix, historyMs, ...texts];
    await runScript(engine, APPEND, [entriesPrefix + computeId, computesKey, totalKey], args);
  }

  return {
    audit: audit.audit,
    appendHistory: async (all) => {
      for (const entry of all.filter(({ kind }) => AUDIT_KINDS.has(kind))) await audit.append(entry);
      const entries = all.filter(({ kind }) => !AUDIT_KINDS.has(kind));
      for (const computeId of new Set(entries.map((entry) => entry.computeId))) {
        const ofCompute = entries.filter((entry) => entry.computeId === computeId);
        await append(computeId, ofCompute.slice(-limits.historyPerCompute));
      }
    },
    history: async ({ computeId, limit, withoutAudit }) => {
      if (limit < 1) return [];
      // The newest entries are those of the computes with the newest last entries.
      const computeIds = computeId === undefined ? await redis.zrevrange(computesKey, 0, limit - 1) : [computeId];
      const [texts, audited] = await Promise.all([
        textsOf(computeIds, limit),
        audit.audit({ computeId, limit: withoutAudit ? 0 : limit, sinceMs: 0, untilMs: Number.MAX_SAFE_INTEGER }),
      ]);
      return newestFirst([...audited.entries, ...texts.flatMap((text) => readHistory(text) ?? [])], limit);
    },
    putSamples: async (computeId, samples) => {
      await redis.hset(samplesKey, computeId, samplesToJson(samples, limits.samples));
    },
    samples: async (computeId) => readSamples(await redis.hget(samplesKey, computeId)),
  };
}

/** Exported since the samples of a compute are deleted with its record. */
export function samplesKeyOf(prefix: string): string {
  return `${prefix}:store:samples`;
}
