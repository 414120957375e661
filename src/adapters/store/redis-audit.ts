import type { HistoryEntry } from '../../domain/records/history.ts';
import type { RedisEngine } from '../../ports/engine.ts';
import type { AuditQuery, Store } from '../../ports/store.ts';
import { type AuditPlace, auditPage, auditPlace, auditToJson } from './audit-json.ts';
import type { StoreLimits } from './limits.ts';

/**
 * A function for scripts. KEYS from k: the stream of the compute, the computes by their last entry. ARGV from a: compute, instant, how
 * long an entry is kept in ms, how many of a compute, entry. Ids of a stream grow, and are never of the future: an entry of a clock
 * that is ahead stands where it arrived, and makes no other old.
 */
export const AUDIT = `
local function audit(k, a)
  local time = redis.call('TIME')
  local ms = math.min(tonumber(ARGV[a + 1]), time[1] * 1000 + math.floor(time[2] / 1000))
  local seq = 0
  local last = redis.call('XREVRANGE', KEYS[k], '+', '-', 'COUNT', 1)[1]
  if last then
    local lastMs, lastSeq = string.match(last[1], '(%d+)-(%d+)')
    if tonumber(lastMs) >= ms then ms, seq = tonumber(lastMs), tonumber(lastSeq) + 1 end
  end
  redis.call('XADD', KEYS[k], 'MAXLEN', ARGV[a + 3], string.format('%.0f-%.0f', ms, seq), 'e', ARGV[a + 4])
  local oldest = string.format('%.0f', math.max(0, ms - tonumber(ARGV[a + 2])))
  redis.call('XTRIM', KEYS[k], 'MINID', oldest)
  redis.call('PEXPIRE', KEYS[k], ARGV[a + 2])
  redis.call('ZADD', KEYS[k + 1], string.format('%.0f', ms), ARGV[a])
  redis.call('ZREMRANGEBYSCORE', KEYS[k + 1], '-inf', '(' .. oldest)
end
`;

const APPEND = `${AUDIT} audit(1, 1) return 1`;

/** The page of the whole fleet is looked for in a slice of time that grows; this is the first, in milliseconds. */
const FIRST_SLICE_MS = 15 * 60_000;
const SLICE_GROWS = 4;
/** How many streams one round trip asks. */
const STREAMS_AT_ONCE = 200;

export interface RedisAudit extends Pick<Store, 'audit'> {
  /** The keys and arguments that {@link AUDIT} takes; empty where there is no entry. */
  part(entry: HistoryEntry | undefined): { keys: string[]; args: (string | number)[] };
  append(entry: HistoryEntry): Promise<void>;
}

type Found = AuditPlace & { text: string };

export function createRedisAudit(options: {
  engine: RedisEngine;
  run: (text: string, keys: readonly string[], args: readonly (string | number)[]) => Promise<unknown>;
  limits: StoreLimits;
}): RedisAudit {
  const { engine, run, limits } = options;
  const { commands: redis, prefix } = engine;
  const streamPrefix = `${prefix}:store:audit:of:`;
  const computesKey = `${prefix}:store:audit:computes`;

  function part(entry: HistoryEntry | undefined) {
    if (!entry) return { keys: [], args: [] };
    const { computeId, atMs, text } = auditToJson(entry, limits.historyEntryBytes);
    const args = [computeId, atMs, limits.auditMs, limits.audit, text];
    return { keys: [streamPrefix + computeId, computesKey], args };
  }

  async function slice(computeIds: readonly string[], fromMs: number, toMs: number): Promise<Found[]> {
    const found: Found[] = [];
    for (let at = 0; at < computeIds.length; at += STREAMS_AT_ONCE) {
      const chunk = computeIds.slice(at, at + STREAMS_AT_ONCE);
      const streams = await Promise.all(chunk.map((id) => redis.xrevrange(streamPrefix + id, toMs, fromMs)));
      found.push(...streams.flat().map(([streamId, [, text = '']]) => placeOf(streamId, text)));
    }
    return found;
  }

  return {
    part,
    async append(entry) {
      const { keys, args } = part(entry);
      await run(APPEND, keys, args);
    },
    async audit({ computeId, sinceMs, untilMs, limit, after }: AuditQuery) {
      if (limit < 1) return { entries: [] };
      const place = auditPlace(after);
      const isAfter = ({ atMs, id }: AuditPlace) =>
        !place || atMs < place.atMs || (atMs === place.atMs && id < place.id);
      const [, newest] = await redis.zrevrange(computesKey, 0, 0, 'WITHSCORES');
      const oldestMs = Math.max(0, sinceMs, Number(newest ?? 0) - limits.auditMs);
      let toMs = Math.min(untilMs, place?.atMs ?? untilMs, Number(newest ?? 0));
      const found: Found[] = [];
      for (let spanMs = FIRST_SLICE_MS; found.length < limit && toMs >= oldestMs; spanMs *= SLICE_GROWS) {
        const fromMs = computeId === undefined ? Math.max(oldestMs, toMs - spanMs) : oldestMs;
        const computeIds =
          computeId === undefined ? await redis.zrangebyscore(computesKey, fromMs, '+inf') : [computeId];
        const some = await slice(computeIds, fromMs, toMs);
        found.push(...some.filter(isAfter).toSorted((a, b) => b.atMs - a.atMs || (b.id < a.id ? -1 : 1)));
        toMs = fromMs - 1;
      }
      return auditPage(found, limit);
    },
  };
}

/** The instant of the stream, and the id of the entry. */
function placeOf(streamId: string, text: string): Found {
  return { atMs: Number(streamId.split('-')[0]), id: /"id":"([^"]*)"/.exec(text)?.[1] ?? '', text };
}
