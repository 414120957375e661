import { MAX_AHEAD_MS } from '../../domain/overrides/instants-ahead.ts';
import { AUDIT } from './redis-audit.ts';

/**
 * Each script is one atomic step. A lease is a hash {holder, token} that Redis lets expire. Invariant: each change of a record checks in the
 * same step that the lease is still the caller's.
 */
const HELD = `
local function held(key, holder, token)
  local lease = redis.call('HMGET', key, 'holder', 'token')
  return lease[1] == holder and lease[2] == token
end
`;

/**
 * KEYS: lease, last token. ARGV: holder, ttl in ms. Returns the token, or false while the lease is held. A lease that lasts much longer than
 * the ttl comes from a wrong clock, and is taken over. The token is the time in microseconds, or one more than the last, so that it grows
 * even if the last one was lost with a flushed Redis.
 */
const ACQUIRE_LEASE = `
local left = redis.call('PTTL', KEYS[1])
if left >= 0 and left <= tonumber(ARGV[2]) + ${MAX_AHEAD_MS} then return false end
local time = redis.call('TIME')
local token = time[1] * 1000000 + time[2]
local last = tonumber(redis.call('GET', KEYS[2]) or '0')
if token <= last then token = last + 1 end
local text = string.format('%.0f', token)
redis.call('SET', KEYS[2], text)
redis.call('HSET', KEYS[1], 'holder', ARGV[1], 'token', text)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return text
`;

/** KEYS: lease. ARGV: holder, token, ttl in ms. Returns 1 if it was still held. */
const RENEW_LEASE = `${HELD}
if not held(KEYS[1], ARGV[1], ARGV[2]) then return 0 end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
`;

/** KEYS: lease. ARGV: holder, token. */
const RELEASE_LEASE = `${HELD}
if held(KEYS[1], ARGV[1], ARGV[2]) then redis.call('DEL', KEYS[1]) end
return 1
`;

/**
 * A Lua function that appends to the outbox. ARGV at `from`: prefix of the keys, how many entries to keep, then id, receiver and text of
 * each entry. `known` has the ids of all kept entries by their number, `entries` the texts of those not sent.
 */
export const APPEND_OUTBOX = `
local function append(from)
  local prefix = ARGV[from]
  for at = from + 2, #ARGV, 3 do
    local id, receiver = ARGV[at], ARGV[at + 1]
    if not redis.call('ZSCORE', prefix .. 'known', id) then
      local number = redis.call('INCR', prefix .. 'last')
      redis.call('ZADD', prefix .. 'known', number, id)
      redis.call('HSET', prefix .. 'entries', id, ARGV[at + 2])
      redis.call('ZADD', prefix .. 'waiting:' .. receiver, number, id)
      redis.call('SADD', prefix .. 'receivers', receiver)
    end
  end
  while redis.call('ZCARD', prefix .. 'known') > tonumber(ARGV[from + 1]) do
    local id = redis.call('ZPOPMIN', prefix .. 'known')[1]
    local text = redis.call('HGET', prefix .. 'entries', id)
    if text then
      local receiver = cjson.decode(text).receiver
      redis.call('HDEL', prefix .. 'entries', id)
      redis.call('ZREM', prefix .. 'waiting:' .. receiver, id)
      redis.call('ZREM', prefix .. 'dead:' .. receiver, id)
      redis.call('INCR', prefix .. 'lost')
    end
  end
end
`;

/**
 * KEYS: lease, the project's records, the projects, pending writes, the outbox. ARGV: holder, token, project, compute, text, SADD or SREM
 * for the pending write; the arguments of {@link AUDIT}, if there is a key for it; those of `append`. Returns 1 if it was written.
 */
const PUT_RECORD = `${HELD}${APPEND_OUTBOX}${AUDIT}
if not held(KEYS[1], ARGV[1], ARGV[2]) then return 0 end
redis.call('HSET', KEYS[2], ARGV[4], ARGV[5])
redis.call('SADD', KEYS[3], ARGV[3])
redis.call(ARGV[6], KEYS[4], ARGV[3] .. '/' .. ARGV[4])
local outboxFrom = 7
if #KEYS > 5 then
  audit(6, 7)
  outboxFrom = 11
end
if #ARGV > outboxFrom + 1 then append(outboxFrom) end
return 1
`;

/**
 * KEYS: the first four as above, the revisions of holds and of freezes, the generation. ARGV: holder, token, project, compute, text, the
 * lease's new ttl in ms, and the required values of the last three keys; an empty generation is not compared. Returns an `IntentOutcome`.
 */
const PUT_INTENT = `${HELD}
if not held(KEYS[1], ARGV[1], ARGV[2]) then return 'lease_lost' end
local function is(value, expected) return (value or '') == expected end
if not is(redis.call('GET', KEYS[5]), ARGV[7]) or not is(redis.call('GET', KEYS[6]), ARGV[8]) then return 'outdated' end
if ARGV[9] ~= '' and not is(redis.call('HGET', KEYS[7], 'number'), ARGV[9]) then return 'outdated' end
redis.call('HSET', KEYS[2], ARGV[4], ARGV[5])
redis.call('SADD', KEYS[3], ARGV[3])
redis.call('SADD', KEYS[4], ARGV[3] .. '/' .. ARGV[4])
redis.call('PEXPIRE', KEYS[1], ARGV[6])
return 'stored'
`;

/** KEYS: the first four as above, and samples. ARGV: holder, token, project, compute. */
const DELETE_RECORD = `${HELD}
if not held(KEYS[1], ARGV[1], ARGV[2]) then return 0 end
redis.call('HDEL', KEYS[2], ARGV[4])
redis.call('SREM', KEYS[4], ARGV[3] .. '/' .. ARGV[4])
redis.call('HDEL', KEYS[5], ARGV[4])
if redis.call('EXISTS', KEYS[2]) == 0 then redis.call('SREM', KEYS[3], ARGV[3]) end
return 1
`;

const TIME = `
local time = redis.call('TIME')
return string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
`;

export const SCRIPTS = {
  acquireLease: ACQUIRE_LEASE,
  renewLease: RENEW_LEASE,
  releaseLease: RELEASE_LEASE,
  putRecord: PUT_RECORD,
  putIntent: PUT_INTENT,
  deleteRecord: DELETE_RECORD,
  time: TIME,
} as const;
