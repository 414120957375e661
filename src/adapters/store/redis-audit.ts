import { createHash } from 'node:crypto';
import type { HistoryEntry } from '../../domain/records/history.ts';
import { type RedisEngine, runScript } from '../../ports/engine.ts';
import type { AuditQuery } from '../../ports/store.ts';
import { type AuditPlace, auditPage, auditPlace, auditToJson } from './history-json.ts';
import type { StoreLimits } from './limits.ts';

/**
 * A Lua function. KEYS at k: the stream. ARGV from a: instant, lifetime of an entry in ms, maximum number of entries of a stream, entry. The ids
 * of a stream grow and are never in the future: an entry of a clock that is ahead gets the time of its arrival, so that others don't expire.
 */
export const AUDIT = `
local function audit(k, a)
  local time = redis.call('TIME')
  local ms = math.min(tonumber(ARGV[a]), time[1] * 1000 + math.floor(time[2] / 1000))
  local seq = 0
  local last = redis.call('XREVRANGE', KEYS[k], '+', '-', 'COUNT', 1)[1]
  if last then
    local lastMs, lastSeq = string.match(last[1], '(%d+)-(%d+)')
    if tonumber(lastMs) >= ms then ms, seq = tonumber(lastMs), tonumber(lastSeq) + 1 end
  end
  redis.call('XADD', KEYS[k], 'MAXLEN', ARGV[a + 2], string.format('%.0f-%.0f', ms, seq), 'e', ARGV[a + 3])
  redis.call('XTRIM', KEYS[k], 'MINID', string.format('%.0f', math.max(0, ms - tonumber(ARGV[a + 1]))))
end
`;

const APPEND = `${AUDIT} audit(1, 1) return 1`;

/** Pages of the whole fleet are read backwards in growing slices of time. */
const FIRST_SLICE_MS = 15 * 60_000;
const SLICE_GROWTH = 4;
/** Computes share streams, since each stream takes at least 4 KB. */
const STREAMS = 64;

type Found = AuditPlace & { text: string };

export type RedisAudit = ReturnType<typeof createRedisAudit>;

export function createRedisAudit({ engine, limits }: { engine: RedisEngine; limits: StoreLimits }) {
  const { commands: redis, prefix } = engine;
  const streams = Array.from({ length: STREAMS }, (_, index) => `${prefix}:store:audit:${index}`);

  /** The keys and arguments that {@link AUDIT} needs to add an entry; empty without an entry. */
  function keysAndArgs(entry: HistoryEntry | undefined): { keys: string[]; args: (string | number)[] } {
    if (!entry) return { keys: [], args: [] };
    const { computeId, atMs, text } = auditToJson(entry, limits.historyEntryBytes);
    return { keys: [streamOf(computeId)], args: [atMs, limits.auditMs, limits.audit, text] };
  }

  function streamOf(computeId: string): string {
    const [byte = 0] = createHash('sha256').update(computeId).digest();
    return streams[byte % STREAMS] ?? '';
  }

  /** Newest first. */
  async function slice(keys: readonly string[], fromMs: number, toMs: number): Promise<Found[]> {
    const slices = await Promise.all(keys.map((key) => redis.xrevrange(key, toMs, fromMs)));
    const placed = slices.flat().map(([streamId, [, text = '']]) => placeOf(streamId, text));
    return placed.toSorted((a, b) => b.atMs - a.atMs || (b.id < a.id ? -1 : 1));
  }

  async function newestMs(keys: readonly string[]): Promise<number> {
    const last = await Promise.all(keys.map((key) => redis.xrevrange(key, '+', '-', 'COUNT', 1)));
    return Math.max(0, ...last.flat().map(([streamId]) => msOf(streamId)));
  }

  return {
    keysAndArgs,
    async append(entry: HistoryEntry): Promise<void> {
      const { keys, args } = keysAndArgs(entry);
      await runScript(engine, APPEND, keys, args);
    },
    async audit({ computeId, sinceMs, untilMs, limit, after }: AuditQuery) {
      if (limit < 1) return { entries: [] };
      const place = auditPlace(after);
      const isAfter = ({ atMs, id }: AuditPlace) =>
        !place || atMs < place.atMs || (atMs === place.atMs && id < place.id);
      const isOfCompute = ({ text }: Found) =>
        computeId === undefined || text.includes(`"computeId":${JSON.stringify(computeId)}`);
      const keys = computeId === undefined ? streams : [streamOf(computeId)];
      const newest = await newestMs(keys);
      const oldestMs = Math.max(0, sinceMs, newest - limits.auditMs);
      let toMs = Math.min(untilMs, place?.atMs ?? untilMs, newest);
      const found: Found[] = [];
      for (let spanMs = FIRST_SLICE_MS; found.length < limit && toMs >= oldestMs; spanMs *= SLICE_GROWTH) {
        const fromMs = computeId === undefined ? Math.max(oldestMs, toMs - spanMs) : oldestMs;
        const some = await slice(keys, fromMs, toMs);
        found.push(...some.filter((entry) => isAfter(entry) && isOfCompute(entry)));
        toMs = fromMs - 1;
      }
      return auditPage(found, limit);
    },
  };
}

/** The place's instant is that of the stream id, which may differ a little from the instant in the entry. Its id is in the entry. */
function placeOf(streamId: string, text: string): Found {
  return { atMs: msOf(streamId), id: /"id":"([^"]*)"/.exec(text)?.[1] ?? '', text };
}

function msOf(streamId: string): number {
  return Number(streamId.split('-')[0]);
}
