/** Generations as a daemon of 0.1.0 reads and writes them, by its own statements: a hash of policies is all that it knows. */
import type { Engine } from '../../src/ports/engine.ts';

const RAISE = `
local last = redis.call('HMGET', KEYS[1], 'number', 'hash')
if last[2] == ARGV[1] then return last[1] end
local time = redis.call('TIME')
local number = math.max(time[1] * 1000 + math.floor(time[2] / 1000), tonumber(last[1] or '0') + 1)
local text = string.format('%.0f', number)
redis.call('HSET', KEYS[1], 'number', text, 'hash', ARGV[1])
return text
`;
const RESTORE = `
local last = redis.call('HGET', KEYS[1], 'number')
if last and tonumber(last) >= tonumber(ARGV[1]) then return last end
redis.call('HSET', KEYS[1], 'number', ARGV[1], 'hash', ARGV[2])
return ARGV[1]
`;

const READ = `SELECT value, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms
  FROM (SELECT 1) one LEFT JOIN ebb_meta ON key = 'generation'`;
const WRITE = `INSERT INTO ebb_meta (key, value) VALUES ('generation', $1)
  ON CONFLICT (key) DO UPDATE SET value = excluded.value`;

interface OldGeneration {
  number: number;
  setHash: string;
}

interface OldGenerations {
  raise(setHash: string): Promise<number>;
  restore(known: OldGeneration): Promise<number>;
  read(): Promise<OldGeneration | undefined>;
}

export function oldGenerations(engine: Engine): OldGenerations {
  if (engine.kind === 'redis') {
    const { commands, prefix } = engine;
    const key = `${prefix}:store:generation`;
    return {
      raise: async (setHash) => Number(await commands.eval(RAISE, 1, key, setHash)),
      restore: async ({ number, setHash }) => Number(await commands.eval(RESTORE, 1, key, number, setHash)),
      async read() {
        const [number, setHash] = await commands.hmget(key, 'number', 'hash');
        return number && setHash ? { number: Number(number), setHash } : undefined;
      },
    };
  }
  const { pool } = engine;
  async function stored(): Promise<{ last?: OldGeneration; nowMs: number }> {
    const [row] = (await pool.query<{ value: string | null; now_ms: unknown }>(READ)).rows;
    const nowMs = Number(row?.now_ms);
    if (row?.value == null) return { nowMs };
    const { number, setHash } = JSON.parse(row.value) as OldGeneration;
    return { last: { number, setHash }, nowMs };
  }
  async function write(generation: OldGeneration): Promise<number> {
    await pool.query(WRITE, [JSON.stringify(generation)]);
    return generation.number;
  }
  return {
    async raise(setHash) {
      const { last, nowMs } = await stored();
      return last?.setHash === setHash
        ? last.number
        : write({ number: Math.max(nowMs, (last?.number ?? 0) + 1), setHash });
    },
    async restore({ number, setHash }) {
      const { last } = await stored();
      return last && last.number >= number ? last.number : write({ number, setHash });
    },
    read: async () => (await stored()).last,
  };
}
