import type { RedisEngine } from '../../ports/engine.ts';
import type { DocumentStore } from '../../ports/store.ts';
import type { RunScript } from './redis-scripts.ts';

/** KEYS: collection. ARGV: name, text, and what the text was, left out if there was none. Gives 1 if it still was so. */
const REPLACE = `
if (redis.call('HGET', KEYS[1], ARGV[1]) or nil) ~= ARGV[3] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return 1
`;

/** A hash for each collection: name → text. */
export function createRedisDocuments({ engine, run }: { engine: RedisEngine; run: RunScript }): DocumentStore {
  const { commands: redis, prefix } = engine;
  const keyOf = (collection: string) => `${prefix}:store:documents:${collection}`;
  return {
    documents: async (collection) => new Map(Object.entries(await redis.hgetall(keyOf(collection)))),
    document: async (collection, name) => (await redis.hget(keyOf(collection), name)) ?? undefined,
    putDocument: async (collection, name, text) => {
      await redis.hset(keyOf(collection), name, text);
    },
    replaceDocument: async (collection, name, { was, text }) =>
      (await run(REPLACE, [keyOf(collection)], [name, text, ...(was === undefined ? [] : [was])])) === 1,
    deleteDocuments: async (collection, names) => {
      if (names.length > 0) await redis.hdel(keyOf(collection), ...names);
    },
  };
}
