import { randomUUID } from 'node:crypto';
import { Cluster } from 'ioredis';
import { z } from 'zod';
import { chunksOf } from '../../common/chunks.ts';
import { MAX_AHEAD_MS } from '../../domain/overrides/instants-ahead.ts';
import { DAY_MS } from '../../domain/time/units.ts';
import { type RedisEngine, runScript } from '../../ports/engine.ts';
import type {
  DecisionIdentity,
  DocumentStore,
  Generation,
  GenerationStore,
  IntentOutcome,
  Lease,
  RecordStore,
  SlotStore,
  Store,
  UsageStore,
} from '../../ports/store.ts';
import type { StoreLimits } from './limits.ts';
import type { OverrideReaders } from './override-json.ts';
import { pendingWritesOf, type RecordReader, recordToJson } from './record-json.ts';
import { createRedisAudit, type RedisAudit } from './redis-audit.ts';
import { createRedisHistory, samplesKeyOf } from './redis-history.ts';
import { createRedisOutbox, outboxArguments } from './redis-outbox.ts';
import { createRedisOverrides, revisionKeysOf } from './redis-overrides.ts';
import { SCRIPTS } from './redis-scripts.ts';
import { revisionsOf, sharedAsk } from './revised-entries.ts';

/** Units in one round trip. A unit of usage has up to 3 KB. */
const UNITS_AT_ONCE = 300;

/** A hash for each account: unit → bytes. */
function createRedisUsage({ commands: redis, prefix }: RedisEngine): UsageStore {
  const keyOf = (account: string) => `${prefix}:store:usage:${account}`;
  return {
    // Only a dump needs the list of accounts, so it is found by a scan, on each node of a Cluster.
    async usageAccounts() {
      const keys = new Set<string>();
      const pattern = `${prefix.replaceAll(/[\\*?[\]]/g, '\\$&')}${keyOf('*').slice(prefix.length)}`;
      for (const node of redis instanceof Cluster ? redis.nodes('master') : [redis]) {
        for await (const foundKeys of node.scanStream({ match: pattern, count: 1000 })) {
          for (const key of foundKeys as string[]) keys.add(key);
        }
      }
      return [...keys].map((key) => key.slice(keyOf('').length)).sort();
    },
    usageUnits: async (account) => (await redis.hkeys(keyOf(account))).sort(),
    usage: async (account, units) => {
      const bytesByUnit = new Map<string, Uint8Array>();
      for (const chunk of chunksOf(units, UNITS_AT_ONCE)) {
        const values = await redis.hmgetBuffer(keyOf(account), ...chunk);
        values.forEach((value, index) => {
          const unit = chunk[index];
          if (value !== null && unit !== undefined) bytesByUnit.set(unit, value);
        });
      }
      return bytesByUnit;
    },
    putUsage: async (account, usage) => {
      for (const chunk of chunksOf([...usage], UNITS_AT_ONCE)) {
        await redis.hset(keyOf(account), ...chunk.flatMap(([unit, bytes]) => [unit, Buffer.from(bytes)]));
      }
    },
    deleteUsage: async (account, units) => {
      for (const chunk of chunksOf(units, UNITS_AT_ONCE)) await redis.hdel(keyOf(account), ...chunk);
    },
  };
}

/** The store on Redis. All keys have the group's prefix, whose braces keep them in one slot of a Cluster. */
export function createRedisStore(options: {
  engine: RedisEngine;
  records: RecordReader;
  overrides: OverrideReaders;
  limits: StoreLimits;
}): Store {
  const { engine, records, overrides, limits } = options;
  const { commands: redis, prefix } = engine;
  const keys = { storeId: `${prefix}:store:id`, lastToken: `${prefix}:store:last-token` };
  const audit = createRedisAudit({ engine, limits });

  return {
    storeId: async () => {
      const known = await redis.get(keys.storeId);
      if (known !== null) return known;
      await redis.setnx(keys.storeId, randomUUID());
      return (await redis.get(keys.storeId)) ?? '';
    },
    timeMs: async () => Number(await runScript(engine, SCRIPTS.time, [keys.storeId], [])),
    acquireLease: async (name, holder, ttlMs) => {
      const scriptKeys = [leaseKeyOf(prefix, name), keys.lastToken];
      const token = await runScript(engine, SCRIPTS.acquireLease, scriptKeys, [holder, Math.ceil(ttlMs)]);
      return token === null ? undefined : { name, holder, token: Number(token) };
    },
    renewLease: async (lease, ttlMs) => {
      const args = [...proofOf(lease), Math.ceil(ttlMs)];
      return (await runScript(engine, SCRIPTS.renewLease, [leaseKeyOf(prefix, lease.name)], args)) === 1;
    },
    releaseLease: async (lease) => {
      await runScript(engine, SCRIPTS.releaseLease, [leaseKeyOf(prefix, lease.name)], proofOf(lease));
    },
    ...createRedisRecords({ engine, records, limits, audit }),
    ...createRedisOverrides({ engine, readers: overrides, limits, audit }),
    ...createRedisGenerations(engine),
    ...createRedisHistory({ engine, limits, audit }),
    ...createRedisOutbox({ engine, limits }),
    ...createRedisUsage(engine),
    ...createRedisDocuments(engine),
    close: async () => {},
  };
}

function createRedisRecords(options: {
  engine: RedisEngine;
  records: RecordReader;
  limits: StoreLimits;
  audit: RedisAudit;
}): RecordStore {
  const { engine, records, limits, audit } = options;
  const { commands: redis, prefix } = engine;
  const keys = {
    projects: `${prefix}:store:projects`,
    pending: `${prefix}:store:pending`,
    records: (projectId: string) => `${prefix}:store:records:${projectId}`,
    samples: samplesKeyOf(prefix),
  };
  const recordKeys = (lease: Lease, projectId: string) => [
    leaseKeyOf(prefix, lease.name),
    keys.records(projectId),
    keys.projects,
    keys.pending,
  ];

  const readRecords = async (projectId: string) =>
    records.readAll(projectId, Object.entries(await redis.hgetall(keys.records(projectId))));

  return {
    records: readRecords,
    brokenRecords: async () => records.broken,
    putRecord: async (projectId, computeId, record, lease, { outbox = [], audit: entry } = {}) => {
      const appended = outboxArguments(engine, limits, outbox);
      const audited = audit.keysAndArgs(entry);
      const pendingCommand = record.intent ? 'SADD' : 'SREM';
      const recordArgs = [...proofOf(lease), projectId, computeId, recordToJson(record), pendingCommand];
      const scriptKeys = [...recordKeys(lease, projectId), appended.key, ...audited.keys];
      const args = [...recordArgs, ...audited.args, ...appended.args];
      return (await runScript(engine, SCRIPTS.putRecord, scriptKeys, args)) === 1;
    },
    putIntent: async (projectId, computeId, record, lease, { ttlMs, decidedBy }) => {
      const { overrides: revision, generation } = decidedBy;
      const recordArgs = [...proofOf(lease), projectId, computeId, recordToJson(record), Math.ceil(ttlMs)];
      const scriptKeys = [...recordKeys(lease, projectId), ...revisionKeysOf(prefix), generationKeyOf(prefix)];
      const required = [...revisionsOf(revision), generation === 'any' ? '' : generation];
      return (await runScript(engine, SCRIPTS.putIntent, scriptKeys, [...recordArgs, ...required])) as IntentOutcome;
    },
    pendingWrites: async (projectId) => {
      if (projectId !== undefined) return pendingWritesOf([projectId], readRecords);
      const members = await redis.smembers(keys.pending);
      return pendingWritesOf(new Set(members.map((member) => member.slice(0, member.indexOf('/')))), readRecords);
    },
    deleteRecord: async (projectId, computeId, lease) => {
      const scriptKeys = [...recordKeys(lease, projectId), keys.samples];
      const args = [...proofOf(lease), projectId, computeId];
      return (await runScript(engine, SCRIPTS.deleteRecord, scriptKeys, args)) === 1;
    },
    projectIds: async () => (await redis.smembers(keys.projects)).sort(),
  };
}

function leaseKeyOf(prefix: string, name: string): string {
  return `${prefix}:store:lease:${name}`;
}

function proofOf({ holder, token }: Lease): string[] {
  return [holder, String(token)];
}

/** KEYS: collection. ARGV: name, new text, and the expected text, which is absent if there must be no document. Returns 1 if it was replaced. */
const REPLACE_DOCUMENT = `
if (redis.call('HGET', KEYS[1], ARGV[1]) or nil) ~= ARGV[3] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return 1
`;

/** A hash for each collection: name → text. */
function createRedisDocuments(engine: RedisEngine): DocumentStore {
  const { commands: redis, prefix } = engine;
  const keyOf = (collection: string) => `${prefix}:store:documents:${collection}`;
  return {
    documents: async (collection) => new Map(Object.entries(await redis.hgetall(keyOf(collection)))),
    document: async (collection, name) => (await redis.hget(keyOf(collection), name)) ?? undefined,
    putDocument: async (collection, name, text) => {
      await redis.hset(keyOf(collection), name, text);
    },
    replaceDocument: async (collection, name, { was, text }) => {
      const args = [name, text, ...(was === undefined ? [] : [was])];
      return (await runScript(engine, REPLACE_DOCUMENT, [keyOf(collection)], args)) === 1;
    },
    deleteDocuments: async (collection, names) => {
      if (names.length > 0) await redis.hdel(keyOf(collection), ...names);
    },
  };
}

/**
 * A daemon of 0.1.0 reads and writes only the number and the hash of the policies. The number to which the other fields belong is stored as
 * `decisionOf`, so that these fields don't count after such a daemon has registered another set.
 */
const GENERATION_FIELDS = ['number', 'hash', 'decisionOf', 'decisionHash', 'decisionVersion'] as const;

/** Lua functions. A generation is a list of texts: number, hash of the policies, decision hash, decision version; '' for unknown. */
const GENERATION_FUNCTIONS = `
local function read(key)
  local last = redis.call('HMGET', key, '${GENERATION_FIELDS.join("', '")}')
  if not last[1] or not last[2] then return nil end
  if last[3] ~= last[1] then return {last[1], last[2], '', ''} end
  return {last[1], last[2], last[4] or '', last[5] or ''}
end
local function write(key, number, hash, decision, version)
  redis.call('HSET', key, 'number', number, 'hash', hash)
  if decision == '' then redis.call('HDEL', key, 'decisionOf', 'decisionHash', 'decisionVersion')
  else redis.call('HSET', key, 'decisionOf', number, 'decisionHash', decision, 'decisionVersion', version) end
  return {number, hash, decision, version}
end
`;

/**
 * KEYS: generation. ARGV: hash of the policies, decision hash, decision version, the only number to replace ('' for any). Returns the
 * current generation. A new number is the time, or one more than the last, so that it grows even across a flushed Redis.
 */
const RAISE_GENERATION = `${GENERATION_FUNCTIONS}
local last = read(KEYS[1])
if last then
  if last[2] == ARGV[1] and last[3] == ARGV[2] then return last end
  if ARGV[4] ~= '' then
    if last[1] ~= ARGV[4] then return last end
  elseif (tonumber(last[4]) or 0) > (tonumber(ARGV[3]) or 0) then return last end
end
local time = redis.call('TIME')
local number = math.max(time[1] * 1000 + math.floor(time[2] / 1000), tonumber(last and last[1] or '0') + 1)
return write(KEYS[1], string.format('%.0f', number), ARGV[1], ARGV[2], ARGV[3])
`;

/** KEYS: generation. ARGV: number, hash of the policies, decision hash, decision version. Returns the current generation. */
const RESTORE_GENERATION = `${GENERATION_FUNCTIONS}
local last = read(KEYS[1])
if last and tonumber(last[1]) > tonumber(ARGV[1]) then return last end
if last and last[1] == ARGV[1] and (last[2] ~= ARGV[2] or last[3] ~= '') then return last end
return write(KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4])
`;

/** KEYS: the policy's slots by their end, kept a day longer. ARGV: compute, allowed, now, end. Returns 1 if the compute holds a slot. */
const TAKE_SLOT = `
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[3])
redis.call('ZREMRANGEBYSCORE', KEYS[1], tonumber(ARGV[4]) + ${MAX_AHEAD_MS}, '+inf')
local held = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not held and redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then return 0 end
redis.call('ZADD', KEYS[1], ARGV[4], ARGV[1])
local last = redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')
redis.call('PEXPIRE', KEYS[1], math.ceil(math.max(0, tonumber(last[2]) - tonumber(ARGV[3]))) + ${DAY_MS})
return 1
`;

const GenerationTexts = z.tuple([z.string(), z.string(), z.string().nullish(), z.string().nullish()]);

function generationKeyOf(prefix: string): string {
  return `${prefix}:store:generation`;
}

function createRedisGenerations(engine: RedisEngine): GenerationStore & SlotStore {
  const { commands: redis, prefix } = engine;
  const generationKey = generationKeyOf(prefix);
  const slotsKey = (policy: string) => `${prefix}:store:slots:${policy}`;

  return {
    async raiseGeneration(own, onlyReplacing) {
      const args = [...identityTexts(own), onlyReplacing ?? ''];
      return generationOf(await runScript(engine, RAISE_GENERATION, [generationKey], args));
    },
    async restoreGeneration(known) {
      const args = [String(known.number), ...identityTexts(known)];
      return generationOf(await runScript(engine, RESTORE_GENERATION, [generationKey], args));
    },
    generation: sharedAsk(async () => {
      const [number, setHash, decisionOf, ...decision] = await redis.hmget(generationKey, ...GENERATION_FIELDS);
      if (!number || !setHash) return undefined;
      return generationOf([number, setHash, ...(decisionOf === number ? decision : [])]);
    }),
    takeSlot: async ({ policy, computeId, allowed, nowMs, untilMs }) =>
      (await runScript(engine, TAKE_SLOT, [slotsKey(policy)], [computeId, allowed, nowMs, untilMs])) === 1,
    releaseSlot: async (policy, computeId) => {
      await redis.zrem(slotsKey(policy), computeId);
    },
    slotsInUse: async (policy, nowMs) => (await redis.zrangebyscore(slotsKey(policy), `(${nowMs}`, '+inf')).sort(),
  };
}

function identityTexts({ setHash, decisionHash = '', decisionVersion }: DecisionIdentity): string[] {
  return [setHash, decisionHash, decisionVersion === undefined ? '' : String(decisionVersion)];
}

/** Parses the scripts' list of texts. */
function generationOf(texts: unknown): Generation {
  const [number, setHash, decisionHash, decisionVersion] = GenerationTexts.parse(texts);
  const decision = decisionHash && decisionVersion && { decisionHash, decisionVersion: Number(decisionVersion) };
  return { number: Number(number), setHash, ...(decision || {}) };
}
