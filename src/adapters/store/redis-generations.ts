import { z } from 'zod';
import { MOST_AHEAD_MS } from '../../domain/overrides/instants-ahead.ts';
import type { RedisEngine } from '../../ports/engine.ts';
import type { DecisionIdentity, Generation, Store } from '../../ports/store.ts';
import type { RunScript } from './redis-scripts.ts';
import { sharedAsk } from './shared-ask.ts';

/**
 * Number and hash of the policies are all that a daemon of 0.1.0 reads and writes. What else identifies a generation is beside them with
 * the number to which it belongs: after such a daemon has registered another set, it belongs to none.
 */
const FIELDS = ['number', 'hash', 'decisionOf', 'decisionHash', 'decisionVersion'] as const;

/** Lua. A generation is a list of texts: number, hash of the policies, decision hash, decision version; '' for what is not known. */
const READ_AND_WRITE = `
local function read(key)
  local last = redis.call('HMGET', key, '${FIELDS.join("', '")}')
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
 * KEYS: generation. ARGV: hash of the policies, decision hash, decision version, the only number to replace ('' for any). Gives the
 * current generation. A new number is the time, or one more than the last: it grows even if the last one was lost with a flushed Redis.
 */
const RAISE = `${READ_AND_WRITE}
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

/** KEYS: generation. ARGV: number, hash of the policies, decision hash, decision version. Gives the current generation. */
const RESTORE = `${READ_AND_WRITE}
local last = read(KEYS[1])
if last and tonumber(last[1]) > tonumber(ARGV[1]) then return last end
if last and last[1] == ARGV[1] and (last[2] ~= ARGV[2] or last[3] ~= '') then return last end
return write(KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4])
`;

/** KEYS: slots of the policy by their end. ARGV: compute, allowed, now, end. Gives 1 if the compute holds one. */
const TAKE_SLOT = `
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[3])
redis.call('ZREMRANGEBYSCORE', KEYS[1], tonumber(ARGV[4]) + ${MOST_AHEAD_MS}, '+inf')
local held = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not held and redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then return 0 end
redis.call('ZADD', KEYS[1], ARGV[4], ARGV[1])
local last = redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')
redis.call('PEXPIRE', KEYS[1], math.ceil(math.max(0, tonumber(last[2]) - tonumber(ARGV[3]))) + ${24 * 3_600_000})
return 1
`;

const Texts = z.tuple([z.string(), z.string(), z.string().nullish(), z.string().nullish()]);

type GenerationsAndSlots = Pick<
  Store,
  'raiseGeneration' | 'restoreGeneration' | 'generation' | 'takeSlot' | 'releaseSlot' | 'slotsInUse'
>;

export function generationKeyOf(prefix: string): string {
  return `${prefix}:store:generation`;
}

export function createRedisGenerations(options: { engine: RedisEngine; run: RunScript }): GenerationsAndSlots {
  const { engine, run } = options;
  const { commands: redis, prefix } = engine;
  const generationKey = generationKeyOf(prefix);
  const slotsKey = (policy: string) => `${prefix}:store:slots:${policy}`;

  return {
    raiseGeneration: async (own, over) =>
      generationOf(await run(RAISE, [generationKey], [...identityTexts(own), over ?? ''])),
    restoreGeneration: async (known) =>
      generationOf(await run(RESTORE, [generationKey], [String(known.number), ...identityTexts(known)])),
    generation: sharedAsk(async () => {
      const [number, setHash, decisionOf, ...decision] = await redis.hmget(generationKey, ...FIELDS);
      if (!number || !setHash) return undefined;
      return generationOf([number, setHash, ...(decisionOf === number ? decision : [])]);
    }),
    takeSlot: async ({ policy, computeId, allowed, nowMs, untilMs }) =>
      (await run(TAKE_SLOT, [slotsKey(policy)], [computeId, allowed, nowMs, untilMs])) === 1,
    releaseSlot: async (policy, computeId) => {
      await redis.zrem(slotsKey(policy), computeId);
    },
    slotsInUse: async (policy, nowMs) => (await redis.zrangebyscore(slotsKey(policy), `(${nowMs}`, '+inf')).sort(),
  };
}

function identityTexts({ setHash, decisionHash = '', decisionVersion }: DecisionIdentity): string[] {
  return [setHash, decisionHash, decisionVersion === undefined ? '' : String(decisionVersion)];
}

/** From the list of texts that the scripts give. */
function generationOf(texts: unknown): Generation {
  const [number, setHash, decisionHash, decisionVersion] = Texts.parse(texts);
  const decision = decisionHash && decisionVersion && { decisionHash, decisionVersion: Number(decisionVersion) };
  return { number: Number(number), setHash, ...(decision || {}) };
}
