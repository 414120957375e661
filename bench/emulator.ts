import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { Pool } from 'undici';
import { medianMs, percentile, printTable } from './figures.ts';

const PROJECTS = 10_000;
const COMPUTES_PER_PROJECT = 2;
const KEY = 'bench';
const REQUESTS = 2_000;
const CONCURRENT = 8;
const DAY_MS = 86_400_000;

const HEADERS = { authorization: `Bearer ${KEY}` };

/** What the emulator costs with a large fleet, as a process of its own, asked over HTTP. */
export async function run(): Promise<void> {
  const startedMs = performance.now();
  const emulator = await startProcess();
  const startMs = performance.now() - startedMs;
  const pool = new Pool(emulator.origin, { connections: CONCURRENT });
  try {
    const page = (limit: number) => medianMs(9, () => get(pool, `/api/v2/projects?limit=${limit}`));
    printTable(
      [`${PROJECTS} projects of ${COMPUTES_PER_PROJECT} computes`, 'ms', 'aim'],
      [
        ['start, from the command to its line', startMs.toFixed(0), '< 3,000'],
        ['a page of 400 projects', (await page(400)).toFixed(1), '< 50'],
        ['a page of 10 projects', (await page(10)).toFixed(1), ''],
        ['a day passes', (await passDay(pool)).toFixed(0), ''],
        ['state of every compute', (await medianMs(3, () => get(pool, '/_emulator/state'))).toFixed(0), ''],
      ],
    );
    const compute = '/api/v2/projects/web-project-00001/endpoints/ep-00001-1';
    const rows = [
      ['GET one compute', ...(await load(pool, () => get(pool, compute)))],
      ['PATCH a timeout', ...(await load(pool, (index) => patchTimeout(pool, compute, 60 + (index % 60))))],
    ];
    printTable([`${REQUESTS} requests, ${CONCURRENT} at a time`, 'a second', 'p50 ms', 'p99 ms'], rows);
  } finally {
    await pool.close();
    await emulator.stop();
  }
}

async function startProcess(): Promise<{ origin: string; stop(): Promise<void> }> {
  const flags = ['--projects', `${PROJECTS}`, '--computes-per-project', `${COMPUTES_PER_PROJECT}`, '--api-key', KEY];
  const child = spawn(process.execPath, ['dist/cli/main.js', 'emulator', ...flags], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = await once(createInterface({ input: child.stdout }), 'line');
  return {
    origin: new URL(JSON.parse(line).url).origin,
    async stop() {
      const ended = once(child, 'exit');
      child.kill('SIGTERM');
      await ended;
    },
  };
}

async function get(pool: Pool, path: string): Promise<void> {
  const answer = await pool.request({ method: 'GET', path, headers: HEADERS });
  await answer.body.text();
  if (answer.statusCode !== 200) throw new Error(`${path} answered ${answer.statusCode}`);
}

async function post(pool: Pool, method: 'POST' | 'PATCH', path: string, body: object): Promise<string> {
  const answer = await pool.request({ method, path, headers: HEADERS, body: JSON.stringify(body) });
  const text = await answer.body.text();
  if (answer.statusCode !== 200) throw new Error(`${path} answered ${answer.statusCode}: ${text}`);
  return text;
}

async function patchTimeout(pool: Pool, path: string, seconds: number): Promise<void> {
  await post(pool, 'PATCH', path, { endpoint: { suspend_timeout_seconds: seconds } });
}

/** The first day: a quarter of the fleet holds connections, and every compute is looked at now and then. */
async function passDay(pool: Pool): Promise<number> {
  const clock = JSON.parse(await post(pool, 'POST', '/_emulator/clock', {}));
  const now = new Date(Date.parse(clock.now) + DAY_MS).toISOString();
  const startedMs = performance.now();
  await post(pool, 'POST', '/_emulator/clock', { now });
  return performance.now() - startedMs;
}

/** Requests a second, and the times that half and 99 % of them stay below, in milliseconds. */
async function load(pool: Pool, call: (index: number) => Promise<void>): Promise<string[]> {
  await call(0);
  const timesMs: number[] = [];
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < REQUESTS) {
      next += 1;
      const startedMs = performance.now();
      await call(next);
      timesMs.push(performance.now() - startedMs);
    }
  };
  const startedMs = performance.now();
  await Promise.all(Array.from({ length: CONCURRENT }, work));
  const tookMs = performance.now() - startedMs;
  const below = (share: number): string => percentile(timesMs, share).toFixed(2);
  if (pool.destroyed) throw new Error('the connection to the emulator is gone');
  return [Math.round((REQUESTS / tookMs) * 1_000).toLocaleString('en'), below(0.5), below(0.99)];
}
