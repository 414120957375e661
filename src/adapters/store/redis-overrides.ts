import { randomUUID } from 'node:crypto';
import type { RedisEngine } from '../../ports/engine.ts';
import type { OverrideStore, PutOutcome } from '../../ports/store.ts';
import type { StoreLimits } from './limits.ts';
import type { OverrideReaders } from './override-json.ts';
import type { RunScript } from './redis-run.ts';
import { createRevisedEntries, inForceAt, oldestFirst, type ReadRevised } from './revised-entries.ts';

/**
 * KEYS: texts by id, ids by their end, revision. ARGV: id, text, end, now, most, new revision. Gives 1 if it was put. What has
 * ended by now makes room.
 */
const PUT = `
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', ARGV[4])) do redis.call('HDEL', KEYS[1], id) end
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', ARGV[4])
local put = redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 or redis.call('HLEN', KEYS[1]) < tonumber(ARGV[5])
if put then
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
  redis.call('ZADD', KEYS[2], ARGV[3], ARGV[1])
end
redis.call('SET', KEYS[3], ARGV[6])
return put and 1 or 0
`;

/** KEYS as above. ARGV: id, new revision. Gives 1 if it was there. */
const DELETE = `
local gone = redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('ZREM', KEYS[2], ARGV[1])
if gone == 1 then redis.call('SET', KEYS[3], ARGV[2]) end
return gone
`;

/** KEYS as above. ARGV: the revision that is known. Gives false if it is still that, else the revision and all texts. */
const READ = `
local revision = redis.call('GET', KEYS[3]) or ''
if revision == ARGV[1] then return false end
return {revision, redis.call('HGETALL', KEYS[1])}
`;

/** KEYS: approvals by time. ARGV: text, time, most. */
const APPROVE = `
redis.call('ZADD', KEYS[1], ARGV[2], ARGV[1])
redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -1 - tonumber(ARGV[3]))
return 1
`;

export interface RedisOverridesOptions {
  engine: RedisEngine;
  run: RunScript;
  readers: OverrideReaders;
  limits: StoreLimits;
}

export function createRedisOverrides({ engine, run, readers, limits }: RedisOverridesOptions): OverrideStore {
  const { commands: redis, prefix } = engine;
  const keysOf = (kind: 'holds' | 'freezes') =>
    ['', ':ends', ':revision'].map((part) => `${prefix}:store:${kind}${part}`);
  const keys = { holds: keysOf('holds'), freezes: keysOf('freezes'), approvals: `${prefix}:store:approvals` };

  const put = async (kind: 'holds' | 'freezes', entry: PutEntry): Promise<PutOutcome> => {
    const { id, expiresAtMs, createdAtMs } = entry;
    const args = [id, JSON.stringify(entry), expiresAtMs, createdAtMs, limits[kind], randomUUID()];
    if ((await run(PUT, keys[kind], args)) === 1) return { ok: true };
    return { ok: false, error: { code: 'full', limit: limits[kind] } };
  };
  const remove = async (kind: 'holds' | 'freezes', id: string) =>
    (await run(DELETE, keys[kind], [id, randomUUID()])) === 1;
  const reader =
    (kind: 'holds' | 'freezes'): ReadRevised =>
    async (known) => {
      const read = (await run(READ, keys[kind], [known ?? 'unknown'])) as [string, string[]] | null;
      return read === null ? undefined : { revision: read[0], texts: pairs(read[1]) };
    };
  const holds = createRevisedEntries({ read: reader('holds'), entry: readers.hold, compare: oldestFirst });
  const freezes = createRevisedEntries({ read: reader('freezes'), entry: readers.freeze, compare: oldestFirst });

  return {
    holds: async (nowMs) => inForceAt(await holds(), nowMs),
    putHold: (hold) => put('holds', hold),
    deleteHold: (id) => remove('holds', id),
    freezes: async (nowMs) => inForceAt(await freezes(), nowMs),
    putFreeze: (freeze) => put('freezes', freeze),
    deleteFreeze: (id) => remove('freezes', id),
    approve: async (approval) => {
      await run(APPROVE, [keys.approvals], [JSON.stringify(approval), approval.atMs, limits.approvals]);
    },
    approvals: async () =>
      (await redis.zrevrange(keys.approvals, 0, -1)).flatMap((text) => readers.approval('', text) ?? []),
  };
}

interface PutEntry {
  id: string;
  createdAtMs: number;
  expiresAtMs: number;
}

/** The reply of HGETALL inside a script. */
function pairs(flat: readonly string[]): Map<string, string> {
  const found = new Map<string, string>();
  for (let at = 0; at + 1 < flat.length; at += 2) found.set(flat[at] ?? '', flat[at + 1] ?? '');
  return found;
}
