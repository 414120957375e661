import { z } from 'zod';
import { parseJson } from '../../common/result.ts';
import { type RedisEngine, runScript } from '../../ports/engine.ts';
import type { OutboxEntry, OutboxStore, QueuedEntry } from '../../ports/outbox.ts';
import type { StoreLimits } from './limits.ts';
import { APPEND_OUTBOX } from './redis-scripts.ts';

/** Must be raised when older versions of ebb would misread a new entry. */
const VERSION = 1;

const Stored = z.looseObject({
  version: z.literal(VERSION),
  receiver: z.string(),
  subject: z.string(),
  atMs: z.number(),
  body: z.string(),
  state: z.literal(['waiting', 'dead']),
  tries: z.number(),
  error: z.string().exactOptional(),
});

/** KEYS: the set `known`. ARGV: prefix of the keys, id, state, tries, error. Returns 1 if the entry exists. */
const UPDATE = `
local text = redis.call('HGET', ARGV[1] .. 'entries', ARGV[2])
local number = redis.call('ZSCORE', KEYS[1], ARGV[2])
if not text or not number then return 0 end
local entry = cjson.decode(text)
redis.call('ZREM', ARGV[1] .. entry.state .. ':' .. entry.receiver, ARGV[2])
redis.call('ZADD', ARGV[1] .. ARGV[3] .. ':' .. entry.receiver, number, ARGV[2])
entry.state = ARGV[3]
entry.tries = tonumber(ARGV[4])
entry.error = ARGV[5] ~= '' and ARGV[5] or nil
redis.call('HSET', ARGV[1] .. 'entries', ARGV[2], cjson.encode(entry))
return 1
`;

/** KEYS: the set `known`, in which the id stays. ARGV: prefix of the keys, id. Returns 1 if the entry existed. */
const FINISH = `
local text = redis.call('HGET', ARGV[1] .. 'entries', ARGV[2])
if not text then return 0 end
local entry = cjson.decode(text)
redis.call('HDEL', ARGV[1] .. 'entries', ARGV[2])
redis.call('ZREM', ARGV[1] .. entry.state .. ':' .. entry.receiver, ARGV[2])
return 1
`;

/** For a script with {@link APPEND_OUTBOX}: a key for the routing in a Cluster, and the arguments of `append`. */
export function outboxArguments({ prefix }: RedisEngine, limits: StoreLimits, entries: readonly OutboxEntry[]) {
  const texts = entries.flatMap(({ id, ...entry }) => {
    return [id, entry.receiver, JSON.stringify({ version: VERSION, ...entry, state: 'waiting', tries: 0 })];
  });
  return { key: `${prefix}:store:outbox:known`, args: [`${prefix}:store:outbox:`, limits.outbox, ...texts] };
}

/** The outbox on Redis: for each receiver, the ids of waiting and of dead entries, by their number. */
export function createRedisOutbox(options: { engine: RedisEngine; limits: StoreLimits }): OutboxStore {
  const { engine, limits } = options;
  const { commands: redis } = engine;
  const prefix = `${engine.prefix}:store:outbox:`;
  const knownKey = `${prefix}known`;

  async function read(ids: readonly string[]): Promise<QueuedEntry[]> {
    if (ids.length === 0) return [];
    const texts = await redis.hmget(`${prefix}entries`, ...ids);
    return texts.flatMap((text, index) => {
      const parsed = Stored.safeParse(text === null ? undefined : parseJson(text));
      if (!parsed.success) return [];
      const { version: _, ...entry } = parsed.data;
      return [{ id: ids[index] ?? '', ...entry }];
    });
  }

  return {
    appendOutbox: async (entries) => {
      if (entries.length === 0) return;
      const { key, args } = outboxArguments(engine, limits, entries);
      await runScript(engine, `${APPEND_OUTBOX}append(1)\nreturn 1`, [key], args);
    },
    outbox: async ({ receiver, state, limit }) =>
      limit < 1 ? [] : read(await redis.zrange(`${prefix}${state}:${receiver}`, 0, String(limit - 1))),
    outboxCounts: async () => {
      const names = (await redis.smembers(`${prefix}receivers`)).sort();
      const counts = await Promise.all(
        names.map(async (receiver) => {
          const [waiting, dead, [oldestId]] = await Promise.all([
            redis.zcard(`${prefix}waiting:${receiver}`),
            redis.zcard(`${prefix}dead:${receiver}`),
            redis.zrange(`${prefix}waiting:${receiver}`, 0, '0'),
          ]);
          const [oldest] = oldestId === undefined ? [] : await read([oldestId]);
          return { receiver, waiting, dead, ...(oldest && { oldestAtMs: oldest.atMs }) };
        }),
      );
      const receivers = counts.filter(({ waiting, dead }) => waiting + dead > 0);
      return { receivers, lost: Number((await redis.get(`${prefix}lost`)) ?? 0) };
    },
    updateOutbox: async (id, { state, tries, error = '' }) =>
      (await runScript(engine, UPDATE, [knownKey], [prefix, id, state, tries, error])) === 1,
    finishOutbox: async (id) => (await runScript(engine, FINISH, [knownKey], [prefix, id])) === 1,
  };
}
