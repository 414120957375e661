import {
  ASK_AGAIN_MS,
  AT_ONCE_SHARE,
  BATCH_MS,
  DEFAULT_PAUSE_MS,
  FIRST_PATIENT,
  FIRST_PROBE_MS,
  HALVED_MS,
  HIGHEST_LEVEL,
  LONGEST_PAUSE_MS,
  LONGEST_PROBE_MS,
  PATIENT_SHARE,
  PRIORITIES,
  PROBE_MS,
  SAME_EVENT_MS,
  SECOND_SHARE,
  STEADY_BURST_SHARE,
  STEADY_LEVEL,
  WAITING_SLACK_MS,
} from '../../domain/rate-budget/grant.ts';
import type { RateLimits } from '../../domain/rate-budget/limits.ts';
import { WEEK_MS } from '../../domain/time/units.ts';
import { type RedisEngine, runScript } from '../../ports/engine.ts';
import type { BudgetStore } from './rate-budget.ts';

/** Longer than any probe: an account that is no longer used is forgotten. */
const KEPT_MS = WEEK_MS;

/**
 * `grant` and `learn` of domain/rate-budget/grant.ts as one atomic step, by Redis' own clock; the contract suite compares the two
 * implementations. KEYS: the account's hash, its list of a minute, its list of the route. ARGV: requests in a minute, in a second, the
 * jitter, the instant (empty: Redis' clock), `grant` or `learn`. Then for `grant`: the number of requests, the priority from 1, whether
 * some are unlogged, how many unlogged ones follow, how long ago each was sent, and log entries for which nothing was sent. For `learn`:
 * the pause.
 */
const SCRIPT = `
local per_minute, per_second, jitter = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local minute_ms, second_ms = 60000 + jitter, 1000 + jitter
local steady_burst = math.ceil(per_minute * ${STEADY_BURST_SHARE})
local function text(number) return string.format('%.17g', number) end
local clock = tonumber(ARGV[4])
if not clock then
  local time = redis.call('TIME')
  clock = time[1] * 1000 + math.floor(time[2] / 1000)
end
local known = redis.call('EXISTS', KEYS[1]) == 1
local function field(name, missing)
  return tonumber(redis.call('HGET', KEYS[1], name) or missing)
end
local began = field('began', known and 0 or clock)
local last = field('last', clock)
local now = math.max(last, clock + field('offset', 0))
local steady_at = field('steady_at', now)
local unknown_until = field('unknown_until', now + minute_ms)
local level = field('level', 0)
local learned_at = field('learned_at', 0)
local probe = field('probe', ${FIRST_PROBE_MS})
local paused_until = field('paused_until', 0)

local quiet = math.max(0, now - learned_at)
local halved = math.max(0, level - ${STEADY_LEVEL})
local active
if quiet < halved * ${HALVED_MS} then
  active = level - math.floor(quiet / ${HALVED_MS})
else
  active = math.max(0, level - halved - math.floor((quiet - halved * ${HALVED_MS}) / probe))
end
local quiet_ms, normal_in = 0, 0
if active > 0 then quiet_ms, normal_in = quiet, halved * ${HALVED_MS} + (level - halved) * probe - quiet end
local function step_at(at) return minute_ms / per_minute * 2 ^ math.max(0, at - ${STEADY_LEVEL}) end

local waiting = {}
local function write()
  redis.call('HSET', KEYS[1], 'began', text(began), 'last', text(now), 'offset', text(now - clock), 'steady_at', text(steady_at),
    'unknown_until', text(unknown_until), 'level', level, 'learned_at', text(learned_at), 'probe', text(probe),
    'paused_until', text(paused_until))
  redis.call('PEXPIRE', KEYS[1], ${KEPT_MS})
end

if ARGV[5] == 'learn' then
  local same = level > 0 and now - learned_at < ${SAME_EVENT_MS}
  if not same then
    local recent = now - learned_at < 4 * math.max(${PROBE_MS}, probe)
    local probed = recent and active < math.min(level, ${STEADY_LEVEL})
    local first = active == 0 and not probed
    if first or (now < unknown_until and probe < ${PROBE_MS}) then
      probe = ${FIRST_PROBE_MS}
    else
      probe = probed and math.min(${LONGEST_PROBE_MS}, math.max(${PROBE_MS}, 2 * probe)) or ${PROBE_MS}
    end
    level = math.min(${HIGHEST_LEVEL}, active + 1)
    learned_at = now
  end
  paused_until = math.max(paused_until, now + math.min(tonumber(ARGV[6]), ${LONGEST_PAUSE_MS}))
  steady_at = math.max(steady_at, paused_until + steady_burst * step_at(level))
  write()
  return {level}
end

local function trim(key, window)
  local first = redis.call('LINDEX', key, 0)
  while first and tonumber(first) <= now - window do
    redis.call('LPOP', key)
    first = redis.call('LINDEX', key, 0)
  end
  return redis.call('LLEN', key)
end
local first_unsent = 10 + tonumber(ARGV[9])
if first_unsent > 10 then
  local all = {}
  for _, entry in ipairs(redis.call('LRANGE', KEYS[2], 0, -1)) do all[#all + 1] = tonumber(entry) end
  for at = 10, first_unsent - 1 do all[#all + 1] = now - tonumber(ARGV[at]) end
  table.sort(all)
  redis.call('DEL', KEYS[2])
  for _, instant in ipairs(all) do redis.call('RPUSH', KEYS[2], text(instant)) end
end
trim(KEYS[3], second_ms)
local not_sent = 0
for at = first_unsent, #ARGV do
  local entry = text(tonumber(ARGV[at]))
  if redis.call('LREM', KEYS[2], -1, entry) > 0 then not_sent = not_sent + redis.call('LREM', KEYS[3], -1, entry) end
end
local in_minute, in_second = trim(KEYS[2], minute_ms), redis.call('LLEN', KEYS[3])
local function room(key, length, limit, window)
  if length < limit then return -math.huge end
  return tonumber(redis.call('LINDEX', key, length - limit)) + window
end
local wanted, rank, unlogged = tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[8] == '1'
local urgent_until = 0
for more_urgent = 1, rank - 1 do urgent_until = math.max(urgent_until, field('waiting' .. more_urgent, 0)) end
if unlogged then unknown_until = now + minute_ms end
local is_patient = rank > ${PRIORITIES.indexOf(FIRST_PATIENT)}
local minute_limit = is_patient and math.max(1, math.floor(per_minute * ${PATIENT_SHARE})) or per_minute

local second_limit = active > 0 and math.max(1, math.floor(per_second * ${SECOND_SHARE})) or per_second
local at_once = math.ceil(second_limit * ${AT_ONCE_SHARE})
local function newest(key) return tonumber(redis.call('LINDEX', key, -1) or -math.huge) end
local sent_last, minute_last = newest(KEYS[3]), newest(KEYS[2])
local steady = active >= ${STEADY_LEVEL} or now < unknown_until
local step = step_at(active)
steady_at = steady_at - not_sent * step
if first_unsent > 10 then steady_at = math.max(steady_at, now + second_ms + steady_burst * step) end
local next_at = math.max(now, paused_until)
local after = {}
while true do
  local spread = math.min(room(KEYS[3], in_second, at_once, second_ms), sent_last + second_ms / second_limit)
  next_at = math.max(next_at, room(KEYS[2], in_minute, minute_limit, minute_ms),
    sent_last, room(KEYS[3], in_second, second_limit, second_ms), spread, steady and steady_at - steady_burst * step or 0)
  if #after == wanted or urgent_until > now or next_at > now + ${BATCH_MS} then break end
  minute_last = math.max(minute_last, next_at)
  redis.call('RPUSH', KEYS[2], text(minute_last))
  redis.call('RPUSH', KEYS[3], text(next_at))
  in_minute, in_second, sent_last = in_minute + 1, in_second + 1, next_at
  steady_at = math.max(steady_at, next_at) + step
  after[#after + 1] = text(next_at - now)
end
local done = #after == wanted
local again = 0
if not done then
  local until_ms = urgent_until > now and urgent_until or next_at - ${BATCH_MS / 2}
  again = math.min(${ASK_AGAIN_MS}, math.max(1, until_ms - now))
  local name = 'waiting' .. rank
  redis.call('HSET', KEYS[1], name, text(math.max(field(name, 0), now + again + ${WAITING_SLACK_MS})))
end
write()
redis.call('PEXPIRE', KEYS[2], math.ceil(2 * minute_ms))
redis.call('PEXPIRE', KEYS[3], math.ceil(2 * minute_ms))
return {text(now), active, text(again), text(quiet_ms), text(normal_in), text(began), unpack(after)}
`;

/** Budgets in Redis, shared by all daemons of a group. Rejects while Redis is unavailable. */
export function createRedisBudgets(options: {
  engine: RedisEngine;
  limits: RateLimits;
  /** Only for tests: replaces Redis' clock, milliseconds since the epoch. */
  clock?: () => number;
}): BudgetStore {
  const { engine, limits, clock } = options;

  async function run(account: string, route: string, args: readonly (string | number)[]): Promise<unknown[]> {
    const name = `${engine.prefix}:api-log:${account}`;
    const { perMinute, perRouteSecond, jitterMs } = limits;
    const all = [perMinute, perRouteSecond, jitterMs, clock?.() ?? '', ...args];
    const keys = [name, `${name}:minute`, `${name}:route:${route}`];
    return (await runScript(engine, SCRIPT, keys, all)) as unknown[];
  }

  return {
    async grant(account, { route, count, priority, unlogged, sentAgoMs = [], unsent = [] }) {
      const rank = PRIORITIES.indexOf(priority) + 1;
      const args = ['grant', count, rank, unlogged ? 1 : 0, sentAgoMs.length, ...sentAgoMs, ...unsent];
      const answer = (await run(account, route, args)).map(Number);
      const [timeMs = 0, level = 0, waitMs = 0, agoMs = 0, normalInMs = 0, beganAtMs = 0, ...afterMs] = answer;
      return { timeMs, level, waitMs, afterMs, beganAtMs, ...(level > 0 && { learnt: { agoMs, normalInMs } }) };
    },
    async learn(account, pauseMs = DEFAULT_PAUSE_MS) {
      const [level] = await run(account, '', ['learn', pauseMs]);
      return Number(level);
    },
  };
}
