/** The whole daemon against an emulated control API, as processes of their own: how late, how many requests, how large. */
import { type ChildProcess, spawn } from 'node:child_process';
import { openSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { request } from 'undici';
import { freePort } from '../test/support/child-server.ts';
import { findProgram, missing } from '../test/support/programs.ts';
import { startRedisServer } from '../test/support/redis-server.ts';
import { crossWithNothing } from './bare-queue.ts';
import { printTable } from './figures.ts';

const KEY = 'bench-key';
const SIZES = [100, 1_000, 10_000] as const;

/** More than any daemon asks: then only the daemon's own speed counts. */
const UNLIMITED = 1_000_000;
const LIMITED = 700;

/** Pictures are read again so long before a boundary. */
const HEAD_START_MS = 6_000;

/** Of /proc/PID/stat: USER_HZ, 100 on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100;

interface Seen {
  method: string;
  path: string;
  /** Milliseconds since the epoch. */
  atMs: number;
  status: number;
}

interface Stage {
  platformUrl: string;
  daemonUrl: string;
  daemon: ChildProcess;
  redisUrl: string;
  requests(): Promise<Seen[]>;
  close(): Promise<void>;
}

/** Lateness at one boundary, and what the fleet costs; `EBB_BENCH_LIMITED=1` also under the vendor's rate limit. */
export async function run(): Promise<void> {
  if (findProgram('redis-server') === undefined) {
    process.stdout.write(`fleet is left out: ${missing('redis-server')}\n`);
    return;
  }
  const rows: string[][] = [];
  const sizes = process.env.EBB_BENCH_PROJECTS?.split(',').map(Number) ?? SIZES;
  for (const projects of sizes) rows.push(await measure(projects, UNLIMITED));
  if (process.env.EBB_BENCH_LIMITED === '1') rows.push(await measure(1_000, LIMITED));
  printTable(
    [
      'projects',
      'requests/min',
      'lateness p50',
      'p99',
      'last',
      'requests per change',
      'CPU per change',
      'RSS',
      'store per compute',
      'scrape',
    ],
    rows,
  );
  for (const projects of sizes) await compareWithBareQueue(projects);
  await measureQuiet();
}

/** What BullMQ takes of it without any of our work. */
async function compareWithBareQueue(jobs: number): Promise<void> {
  const redis = await startRedisServer();
  try {
    const { lateMs, cpuMsPerJob } = await crossWithNothing(redis.url, jobs);
    const at = (share: number) => Math.round(lateMs[Math.min(jobs - 1, Math.floor(jobs * share))] ?? Number.NaN);
    process.stdout.write(
      `BullMQ alone, ${jobs} jobs that do nothing: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, ${cpuMsPerJob.toFixed(1)} ms of CPU for each\n`,
    );
  } finally {
    await redis.close();
  }
}

async function measure(projects: number, perMinute: number): Promise<string[]> {
  const boundaryMs = Math.ceil((Date.now() + 25_000 + projects * 6) / 1000) * 1000;
  const stage = await start({ projects, perMinute, policy: boundaryAt(boundaryMs) });
  try {
    const before = (await stage.requests()).length;
    const deadlineMs = boundaryMs + 30_000 + (projects * 2 * 60_000) / perMinute + projects * 10;
    let patches: Seen[] = [];
    await sleep(Math.max(0, boundaryMs - HEAD_START_MS - Date.now()));
    const cpuBefore = await cpuSeconds(stage.daemon);
    while (patches.length < projects && Date.now() < deadlineMs) {
      await sleep(500);
      patches = (await stage.requests()).filter(({ method, status }) => method === 'PATCH' && status === 200);
    }
    const cpuMs = ((await cpuSeconds(stage.daemon)) - cpuBefore) * 1000;
    const all = await stage.requests();
    const late = patches.map(({ atMs }) => atMs - boundaryMs).toSorted((a, b) => a - b);
    const at = (share: number) =>
      `${Math.round(late[Math.min(late.length - 1, Math.floor(late.length * share))] ?? Number.NaN)} ms`;
    const atBoundary = all.filter(({ atMs }) => atMs >= boundaryMs - HEAD_START_MS).length;
    const scraped = await scrapeMs(stage.daemonUrl);
    return [
      `${patches.length} of ${projects}`,
      perMinute === UNLIMITED ? 'no limit' : String(perMinute),
      at(0.5),
      at(0.99),
      at(1),
      (atBoundary / Math.max(1, patches.length)).toFixed(2),
      `${(cpuMs / Math.max(1, patches.length)).toFixed(1)} ms`,
      `${Math.round(await rssMb(stage.daemon))} MB`,
      `${Math.round((await storeBytes(stage.redisUrl)) / projects)} B`,
      `${Math.round(scraped)} ms (${before} requests to start)`,
    ];
  } finally {
    await stage.close();
  }
}

/** What a fleet without change costs in a minute. */
async function measureQuiet(): Promise<void> {
  const stage = await start({ projects: 1_000, perMinute: UNLIMITED, policy: boundaryAt(Date.now() + 3_600_000) });
  try {
    await sleep(20_000);
    const fromMs = Date.now();
    await sleep(60_000);
    const inMinute = (await stage.requests()).filter(({ atMs }) => atMs >= fromMs);
    const lists = inMinute.filter(({ path }) => /\/projects(\?|$)/.test(path)).length;
    process.stdout.write(
      `a minute without change, 1,000 projects: ${lists} requests for the list, ${inMinute.length - lists} in the background\n`,
    );
  } finally {
    await stage.close();
  }
}

function boundaryAt(ms: number): string {
  const iso = (at: number) => new Date(Math.ceil(at / 1000) * 1000).toISOString().replace('.000', '');
  return `version: 1
policies:
  - name: bigger
    kind: schedule
    select: { projects: ["*"] }
    windows: [{ at: ${iso(ms)}/${iso(ms + 3_600_000)}, size: 1-2, suspend_after: 10m }]
    otherwise: leave
`;
}

/** Every project with one sleeping compute. */
function sleepingFleet(projects: number): string {
  const compute = (index: number) => ({
    id: `ep-bench-${index}`,
    branch_id: `br-bench-${index}`,
    type: 'read_write',
    min_cu: 0.25,
    max_cu: 0.5,
    suspend_timeout_seconds: 300,
    state: 'idle',
  });
  return JSON.stringify({
    projects: Array.from({ length: projects }, (_, index) => ({
      id: `p-bench-${index}`,
      name: `bench-${index}`,
      region_id: 'aws-eu-central-1',
      pg_version: 17,
      computes: [compute(index)],
    })),
  });
}

async function start(options: { projects: number; perMinute: number; policy: string }): Promise<Stage> {
  const folder = await mkdtemp(join(tmpdir(), 'ebb-bench-'));
  const undo: (() => Promise<unknown>)[] = [() => rm(folder, { recursive: true, force: true })];
  const close = async () => {
    for (const step of undo.splice(0).reverse()) await step();
  };
  try {
    const redis = await startRedisServer();
    undo.push(() => redis.close());
    await writeFile(join(folder, 'fleet.json'), sleepingFleet(options.projects));
    await writeFile(join(folder, 'policy.yaml'), options.policy);
    await writeFile(join(folder, 'ebb.yaml'), `api_requests_per_minute: ${options.perMinute}\n`);
    const limits =
      options.perMinute === UNLIMITED ? [] : ['--rate-limit', `${options.perMinute}/min`, '--burst', '40/s'];
    const fleet = ['--fleet', join(folder, 'fleet.json'), '--api-key', KEY, '--operation-time', '1000'];
    const emulator = command(['emulator', ...fleet, ...limits], {}, folder);
    undo.push(() => end(emulator));
    const { url } = JSON.parse(await firstLine(emulator, (line) => line.includes('"url"'))) as { url: string };
    const port = await freePort();
    const env = {
      EBB_API_URL: url,
      EBB_API_KEY: KEY,
      EBB_MODE: 'enforce',
      EBB_QUEUE_URL: redis.url,
      EBB_POLICIES: join(folder, 'policy.yaml'),
      EBB_LISTEN: `127.0.0.1:${port}`,
      EBB_LOG_LEVEL: 'info',
    };
    const log = join(folder, 'ebb.log');
    const daemon = command(['run'], env, folder, log);
    undo.push(() => end(daemon));
    await waitForLine(log, '"ebb.start"');
    const platformUrl = url.replace('/api/v2', '');
    return {
      platformUrl,
      daemonUrl: `http://127.0.0.1:${port}`,
      daemon,
      redisUrl: redis.url,
      requests: () => requestsOf(platformUrl),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** With a log its output goes there: a reader that is slow must not slow down what is measured. */
function command(args: readonly string[], env: Record<string, string>, cwd: string, log?: string): ChildProcess {
  return spawn(process.execPath, [join(import.meta.dirname, '../dist/cli/main.js'), ...args], {
    cwd,
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', log === undefined ? 'pipe' : openSync(log, 'w'), 'inherit'],
  });
}

async function waitForLine(file: string, wanted: string): Promise<void> {
  const giveUpMs = Date.now() + 60_000;
  while (!(await readFile(file, 'utf8')).includes(wanted)) {
    if (Date.now() > giveUpMs) throw new Error(`it never says ${wanted}`);
    await sleep(100);
  }
}

async function firstLine(child: ChildProcess, wanted: (line: string) => boolean): Promise<string> {
  if (!child.stdout) throw new Error('no output');
  const lines = createInterface({ input: child.stdout });
  return new Promise((resolve, reject) => {
    lines.on('line', (line) => wanted(line) && resolve(line));
    child.on('close', () => reject(new Error('it ended before it was ready')));
  });
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.on('close', resolve));
  child.kill('SIGTERM');
  await ended;
}

async function requestsOf(platformUrl: string): Promise<Seen[]> {
  const { body } = await request(`${platformUrl}/_emulator/requests`);
  const { requests } = (await body.json()) as {
    requests: { method: string; path: string; at: string; status: number }[];
  };
  return requests.map(({ method, path, at, status }) => ({ method, path, status, atMs: Date.parse(at) }));
}

async function scrapeMs(url: string): Promise<number> {
  const startedMs = performance.now();
  const { body } = await request(`${url}/metrics`);
  await body.text();
  return performance.now() - startedMs;
}

/** Of the process itself, in user and kernel mode, since it began. */
async function cpuSeconds({ pid }: ChildProcess): Promise<number> {
  const fields = (await readFile(`/proc/${pid}/stat`, 'utf8')).replace(/^.*\) /, '').split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

async function rssMb({ pid }: ChildProcess): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024;
}

async function storeBytes(url: string): Promise<number> {
  const redis = new Redis(url);
  try {
    const info = await redis.info('memory');
    return Number(/used_memory_dataset:(\d+)/.exec(info)?.[1]);
  } finally {
    redis.disconnect();
  }
}
