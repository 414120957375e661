import { randomUUID } from 'node:crypto';
import { Cluster } from 'ioredis';
import type { RedisEngine } from '../../ports/engine.ts';
import type { IntentOutcome, Lease, Store, UsageStore } from '../../ports/store.ts';
import type { StoreLimits } from './limits.ts';
import type { OverrideReaders } from './override-json.ts';
import { pendingWritesOf, type RecordReader, recordToJson } from './record-json.ts';
import { createRedisAudit, type RedisAudit } from './redis-audit.ts';
import { createRedisDocuments } from './redis-documents.ts';
import { createRedisGenerations, generationKeyOf } from './redis-generations.ts';
import { createRedisHistory, samplesKeyOf } from './redis-history.ts';
import { createRedisOutbox, outboxArguments } from './redis-outbox.ts';
import { createRedisOverrides, revisionKeysOf } from './redis-overrides.ts';
import { createRunScript, type RunScript, SCRIPTS } from './redis-scripts.ts';
import { revisionsOf } from './revised-entries.ts';

/** How many units one round trip carries: 3 KB each. */
const UNITS_AT_ONCE = 300;

/** A hash for each account: unit → bytes. */
function createRedisUsage({ commands: redis, prefix }: RedisEngine): UsageStore {
  const keyOf = (account: string) => `${prefix}:store:usage:${account}`;
  return {
    // Only a dump asks for them, so Redis is searched for them, each node of a Cluster by itself.
    async usageAccounts() {
      const keys = new Set<string>();
      const pattern = `${prefix.replaceAll(/[\\*?[\]]/g, '\\$&')}${keyOf('*').slice(prefix.length)}`;
      for (const node of redis instanceof Cluster ? redis.nodes('master') : [redis]) {
        for await (const found of node.scanStream({ match: pattern, count: 1000 })) {
          for (const key of found as string[]) keys.add(key);
        }
      }
      return [...keys].map((key) => key.slice(keyOf('').length)).sort();
    },
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

export interface RedisStoreOptions {
  engine: RedisEngine;
  records: RecordReader;
  overrides: OverrideReaders;
  limits: StoreLimits;
}

/** The store on Redis. All keys carry the group's prefix, whose braces keep them in one slot of a Cluster. */
export function createRedisStore({ engine, records, overrides, limits }: RedisStoreOptions): Store {
  const { commands: redis, prefix } = engine;
  const keys = {
    storeId: `${prefix}:store:id`,
    lastToken: `${prefix}:store:last-token`,
  };

  const runScript = createRunScript(engine);
  const audit = createRedisAudit({ engine, run: runScript, limits });
  const run = (script: keyof typeof SCRIPTS, scriptKeys: string[], args: (string | number)[]) =>
    runScript(SCRIPTS[script], scriptKeys, args);

  return {
    storeId: async () => {
      const known = await redis.get(keys.storeId);
      if (known !== null) return known;
      await redis.setnx(keys.storeId, randomUUID());
      return (await redis.get(keys.storeId)) ?? '';
    },
    timeMs: async () => Number(await run('time', [keys.storeId], [])),
    acquireLease: async (name, holder, ttlMs) => {
      const token = await run('acquireLease', [leaseKeyOf(prefix, name), keys.lastToken], [holder, Math.ceil(ttlMs)]);
      return token === null ? undefined : { name, holder, token: Number(token) };
    },
    renewLease: async (lease, ttlMs) =>
      (await run('renewLease', [leaseKeyOf(prefix, lease.name)], [...proofOf(lease), Math.ceil(ttlMs)])) === 1,
    releaseLease: async (lease) => {
      await run('releaseLease', [leaseKeyOf(prefix, lease.name)], proofOf(lease));
    },
    ...createRedisRecords({ engine, run: runScript, records, limits, audit }),
    ...createRedisOverrides({ engine, run: runScript, readers: overrides, limits, audit }),
    ...createRedisGenerations({ engine, run: runScript }),
    ...createRedisHistory({ engine, run: runScript, limits, audit }),
    ...createRedisOutbox({ engine, run: runScript, limits }),
    ...createRedisUsage(engine),
    ...createRedisDocuments({ engine, run: runScript }),
    close: async () => {},
  };
}

type RedisRecords = Pick<
  Store,
  'records' | 'brokenRecords' | 'putRecord' | 'putIntent' | 'pendingWrites' | 'deleteRecord' | 'projectIds'
>;

function createRedisRecords(options: {
  engine: RedisEngine;
  run: RunScript;
  records: RecordReader;
  limits: StoreLimits;
  audit: RedisAudit;
}): RedisRecords {
  const { engine, run: runScript, records, limits, audit } = options;
  const { commands: redis, prefix } = engine;
  const keys = {
    projects: `${prefix}:store:projects`,
    pending: `${prefix}:store:pending`,
    records: (projectId: string) => `${prefix}:store:records:${projectId}`,
    samples: samplesKeyOf(prefix),
  };
  const run = (script: keyof typeof SCRIPTS, scriptKeys: string[], args: (string | number)[]) =>
    runScript(SCRIPTS[script], scriptKeys, args);
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
      const audited = audit.part(entry);
      const own = [...proofOf(lease), projectId, computeId, recordToJson(record), record.intent ? 'SADD' : 'SREM'];
      const scriptKeys = [...recordKeys(lease, projectId), appended.key, ...audited.keys];
      const args = [...own, ...audited.args, ...appended.args];
      return (await run('putRecord', scriptKeys, args)) === 1;
    },
    putIntent: async (projectId, computeId, record, lease, { ttlMs, decidedBy }) => {
      const { overrides: revision, generation } = decidedBy;
      const own = [...proofOf(lease), projectId, computeId, recordToJson(record), Math.ceil(ttlMs)];
      const scriptKeys = [...recordKeys(lease, projectId), ...revisionKeysOf(prefix), generationKeyOf(prefix)];
      const outcome = await run('putIntent', scriptKeys, [
        ...own,
        ...revisionsOf(revision),
        generation === 'any' ? '' : generation,
      ]);
      return outcome as IntentOutcome;
    },
    pendingWrites: async (projectId) => {
      if (projectId !== undefined) return pendingWritesOf([projectId], readRecords);
      const members = await redis.smembers(keys.pending);
      return pendingWritesOf(new Set(members.map((member) => member.slice(0, member.indexOf('/')))), readRecords);
    },
    deleteRecord: async (projectId, computeId, lease) => {
      const scriptKeys = [...recordKeys(lease, projectId), keys.samples];
      return (await run('deleteRecord', scriptKeys, [...proofOf(lease), projectId, computeId])) === 1;
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
