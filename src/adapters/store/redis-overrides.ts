import { randomUUID } from 'node:crypto';
import type { Freeze } from '../../domain/overrides/freezes.ts';
import type { Hold } from '../../domain/overrides/holds.ts';
import { type RedisEngine, runScript } from '../../ports/engine.ts';
import type { OverrideStore, PutOutcome, WithAudit } from '../../ports/store.ts';
import type { StoreLimits } from './limits.ts';
import type { OverrideReaders } from './override-json.ts';
import { AUDIT, type RedisAudit } from './redis-audit.ts';
import { createRevisedEntries, type ReadRevised, readersOf } from './revised-entries.ts';

/**
 * KEYS: texts by id, ids by their expiry, revision, deleted ids by their expiry. ARGV: id, text, expiry, now, maximum number, new revision;
 * then the arguments of {@link AUDIT}. Returns 1 if the entry was stored, or had been deleted before. Expired entries make room.
 */
const PUT = `${AUDIT}
redis.call('ZREMRANGEBYSCORE', KEYS[4], '-inf', ARGV[4])
if redis.call('ZSCORE', KEYS[4], ARGV[1]) then return 1 end
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', ARGV[4])) do redis.call('HDEL', KEYS[1], id) end
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', ARGV[4])
local put = redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 or redis.call('HLEN', KEYS[1]) < tonumber(ARGV[5])
if put then
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
  redis.call('ZADD', KEYS[2], ARGV[3], ARGV[1])
  if #KEYS > 4 then audit(5, 7) end
end
redis.call('SET', KEYS[3], ARGV[6])
return put and 1 or 0
`;

/** KEYS as above. ARGV: id, new revision, how many deleted ids to keep; then the arguments of {@link AUDIT}. Returns 1 if the entry existed. */
const DELETE = `${AUDIT}
if redis.call('HDEL', KEYS[1], ARGV[1]) == 0 then return 0 end
redis.call('ZADD', KEYS[4], redis.call('ZSCORE', KEYS[2], ARGV[1]) or '+inf', ARGV[1])
redis.call('ZREMRANGEBYRANK', KEYS[4], 0, -1 - tonumber(ARGV[3]))
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('SET', KEYS[3], ARGV[2])
if #KEYS > 4 then audit(5, 4) end
return 1
`;

/** KEYS as above. ARGV: a revision. Returns false if this is the current revision, else the current one, all texts, and the deleted ids. */
const READ = `
local revision = redis.call('GET', KEYS[3]) or ''
if revision == ARGV[1] then return false end
return {revision, redis.call('HGETALL', KEYS[1]), redis.call('ZRANGE', KEYS[4], 0, -1)}
`;

/** KEYS: approvals by time. ARGV: text, time, how many to keep; then the arguments of {@link AUDIT}. */
const APPROVE = `${AUDIT}
redis.call('ZADD', KEYS[1], ARGV[2], ARGV[1])
redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -1 - tonumber(ARGV[3]))
if #KEYS > 1 then audit(2, 4) end
return 1
`;

/** Keys of the revisions of holds and of freezes, in this order. */
export function revisionKeysOf(prefix: string): string[] {
  return ['holds', 'freezes'].map((kind) => `${prefix}:store:${kind}:revision`);
}

export function createRedisOverrides(options: {
  engine: RedisEngine;
  readers: OverrideReaders;
  limits: StoreLimits;
  audit: RedisAudit;
}): OverrideStore {
  const { engine, readers, limits, audit } = options;
  const { commands: redis, prefix } = engine;
  const keysOf = (kind: 'holds' | 'freezes') =>
    ['', ':ends', ':revision', ':ended'].map((part) => `${prefix}:store:${kind}${part}`);
  const keys = { holds: keysOf('holds'), freezes: keysOf('freezes'), approvals: `${prefix}:store:approvals` };

  const runAudited = (script: string, [scriptKeys, args]: [string[], (string | number)[]], also: WithAudit = {}) => {
    const audited = audit.keysAndArgs(also.audit);
    return runScript(engine, script, [...scriptKeys, ...audited.keys], [...args, ...audited.args]);
  };
  const put = async (kind: 'holds' | 'freezes', entry: Hold | Freeze, also?: WithAudit): Promise<PutOutcome> => {
    const { id, expiresAtMs, createdAtMs } = entry;
    const args = [id, JSON.stringify(entry), expiresAtMs, createdAtMs, limits[kind], randomUUID()];
    if ((await runAudited(PUT, [keys[kind], args], also)) === 1) return { ok: true };
    return { ok: false, error: { code: 'full', limit: limits[kind] } };
  };
  const remove = async (kind: 'holds' | 'freezes', id: string, also?: WithAudit) =>
    (await runAudited(DELETE, [keys[kind], [id, randomUUID(), limits[kind]]], also)) === 1;
  const reader =
    (kind: 'holds' | 'freezes'): ReadRevised =>
    async (knownRevision) => {
      const read = (await runScript(engine, READ, keys[kind], [knownRevision ?? 'unknown'])) as
        | [string, string[], string[]]
        | null;
      if (read === null) return undefined;
      const [revision, flat, ended] = read;
      return { revision, texts: pairs(flat), endedIds: new Set(ended) };
    };
  const holds = createRevisedEntries({ read: reader('holds'), parse: readers.hold });
  const freezes = createRevisedEntries({ read: reader('freezes'), parse: readers.freeze });

  return {
    ...readersOf(holds, freezes),
    putHold: (hold, also) => put('holds', hold, also),
    deleteHold: (id, also) => remove('holds', id, also),
    putFreeze: (freeze, also) => put('freezes', freeze, also),
    deleteFreeze: (id, also) => remove('freezes', id, also),
    approve: async (approval, also) => {
      const args = [JSON.stringify(approval), approval.atMs, limits.approvals];
      await runAudited(APPROVE, [[keys.approvals], args], also);
    },
    approvals: async () =>
      (await redis.zrevrange(keys.approvals, 0, -1)).flatMap((text) => readers.approval('', text) ?? []),
  };
}

/** The reply of HGETALL inside a script. */
function pairs(flat: readonly string[]): Map<string, string> {
  const texts = new Map<string, string>();
  for (let at = 0; at + 1 < flat.length; at += 2) texts.set(flat[at] ?? '', flat[at + 1] ?? '');
  return texts;
}
