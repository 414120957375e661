/** The whole daemon against an emulated control API, as processes of their own: how late, how many requests, how large. */
import type { ChildProcess } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { Pool, request } from 'undici';
import { findProgram, missing } from '../test/support/programs.ts';
import { startRedisServer } from '../test/support/redis-server.ts';
import { crossWithNothing } from './bare-queue.ts';
import { percentile, printTable } from './figures.ts';
import { KEY, OPERATION_MS, type Seen, type Stage, startDaemon, startPlatform, UNLIMITED } from './fleet-stage.ts';

const SIZES = [100, 1_000, 10_000] as const;

const LIMITED = 700;

/** Pictures are read again so long before a boundary. */
const HEAD_START_MS = 6_000;

/** As many as the daemon's own client keeps. */
const CONNECTIONS = 16;

/** Of /proc/PID/stat: USER_HZ, 100 on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100;

/** Lateness at one boundary, and what the fleet costs, without a rate limit; with it: limit.ts. */
export async function run(): Promise<void> {
  if (findProgram('redis-server') === undefined) {
    process.stdout.write(`fleet is left out: ${missing('redis-server')}\n`);
    return;
  }
  const rows: string[][] = [];
  const sizes = process.env.EBB_BENCH_PROJECTS?.split(',').map(Number) ?? SIZES;
  for (const projects of sizes) rows.push(await measure(projects, UNLIMITED));
  printTable(
    [
      'projects',
      'requests/min',
      'lateness p50',
      'p99',
      'last',
      'requests per change',
      'CPU per change',
      'at the next boundary',
      'RSS',
      'store per compute',
      'scrape',
    ],
    rows,
  );
  for (const projects of sizes) await compareWithBareQueue(projects);
  for (const projects of sizes) await compareWithBareRequests(projects);
  await measureFive();
  await measureEmbedded();
  await measureQuiet();
}

/** Computes of one project come one after the other: the control API refuses a change while an operation runs there. */
async function measureFive(): Promise<void> {
  const boundaryMs = Math.ceil((Date.now() + 20_000) / 1000) * 1000;
  const fleet = { projects: 1, computesEach: 5, state: 'active' } as const;
  const stage = await startDaemon({ ...fleet, perMinute: LIMITED, policy: boundaryAt(boundaryMs) });
  try {
    const state = async () => {
      const { body } = await request(`${stage.platformUrl}/_emulator/state`);
      return (await body.json()) as { open_operations: number; computes: { max_cu: number }[] };
    };
    const isOver = ({ open_operations: open, computes }: Awaited<ReturnType<typeof state>>) =>
      open === 0 && computes.every(({ max_cu: maxCu }) => maxCu === 2);
    while (!isOver(await state()) && Date.now() < boundaryMs + 120_000) await sleep(100);
    const seconds = (Date.now() - boundaryMs) / 1000;
    const atBoundary = (await stage.requests()).filter(({ atMs }) => atMs >= boundaryMs - HEAD_START_MS).length;
    // Resizing one that is awake takes three operations, one after the other.
    const aim = 5 * ((3 * OPERATION_MS) / 1000 + 1);
    process.stdout.write(
      `five active computes of one project: ${seconds.toFixed(1)} s (× ${(seconds / aim).toFixed(2)} of five times their operations and a second), ${(atBoundary / 5).toFixed(1)} requests for each\n`,
    );
  } finally {
    await stage.close();
  }
}

/** A small fleet without Redis: queue and store are in the daemon's own process. */
async function measureEmbedded(): Promise<void> {
  const projects = 50;
  const boundaryMs = Math.ceil((Date.now() + 30_000) / 1000) * 1000;
  const nextMs = boundaryMs + 60_000;
  const env = { EBB_QUEUE_URL: 'embedded:queue' };
  const stage = await startDaemon({ projects, perMinute: UNLIMITED, policy: boundaryAt(boundaryMs, nextMs), env });
  try {
    for (const instantMs of [boundaryMs, nextMs]) {
      const { patches } = await changesAt(stage, instantMs, projects);
      const at = (share: number) => lateMs(patches, instantMs, share);
      process.stdout.write(
        `${patches.length} of ${projects} on an embedded store: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms\n`,
      );
    }
  } finally {
    await stage.close();
  }
}

/** What BullMQ takes of it without any of our work. */
async function compareWithBareQueue(jobs: number): Promise<void> {
  const redis = await startRedisServer();
  try {
    const { lateMs, cpuMsPerJob } = await crossWithNothing(redis.url, jobs);
    const at = (share: number) => Math.round(percentile(lateMs, share));
    process.stdout.write(
      `BullMQ alone, ${jobs} jobs that do nothing: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, ${cpuMsPerJob.toFixed(1)} ms of CPU for each\n`,
    );
  } finally {
    await redis.close();
  }
}

/** What the platform takes of it: the same changes at once, sent by nothing but a pool of connections. */
async function compareWithBareRequests(projects: number): Promise<void> {
  const stage = await startPlatform({ projects, perMinute: UNLIMITED });
  const pool = new Pool(stage.platformUrl, { connections: CONNECTIONS });
  try {
    const startMs = Date.now();
    const changes = Array.from({ length: projects }, async (_, index) => {
      const { body } = await pool.request({
        method: 'PATCH',
        path: `/api/v2/projects/p-bench-${index}/endpoints/ep-bench-${index}-0`,
        headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
        body: JSON.stringify({ endpoint: { autoscaling_limit_min_cu: 1, autoscaling_limit_max_cu: 2 } }),
      });
      await body.dump();
    });
    await Promise.all(changes);
    const lateMs = (await patchesOf(stage)).map(({ atMs }) => atMs - startMs);
    const at = (share: number) => Math.round(percentile(lateMs, share));
    process.stdout.write(`undici alone, ${lateMs.length} PATCHes at once: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms\n`);
  } finally {
    await pool.close();
    await stage.close();
  }
}

export async function patchesOf(stage: Pick<Stage, 'requests'>): Promise<Seen[]> {
  return (await stage.requests()).filter(({ method, status }) => method === 'PATCH' && status === 200);
}

async function measure(projects: number, perMinute: number): Promise<string[]> {
  const boundaryMs = Math.ceil((Date.now() + 25_000 + projects * 6) / 1000) * 1000;
  const nextMs = boundaryMs + 60_000 + projects * 10;
  const stage = await startDaemon({ projects, perMinute, policy: boundaryAt(boundaryMs, nextMs) });
  try {
    const before = (await stage.requests()).length;
    const { patches, cpuMs } = await changesAt(stage, boundaryMs, projects);
    const all = await stage.requests();
    const at = (share: number) => `${lateMs(patches, boundaryMs, share)} ms`;
    const atBoundary = all.filter(({ atMs }) => atMs >= boundaryMs - HEAD_START_MS).length;
    const scraped = await scrapeMs(stage.daemonUrl);
    const rss = await rssMb(stage.daemon);
    const next = await changesAt(stage, nextMs, projects);
    return [
      `${patches.length} of ${projects}`,
      perMinute === UNLIMITED ? 'no limit' : String(perMinute),
      at(0.5),
      at(0.99),
      at(1),
      (atBoundary / Math.max(1, patches.length)).toFixed(2),
      `${(cpuMs / Math.max(1, patches.length)).toFixed(1)} ms`,
      `p50 ${lateMs(next.patches, nextMs, 0.5)}, p99 ${lateMs(next.patches, nextMs, 0.99)} ms, CPU ${(next.cpuMs / Math.max(1, next.patches.length)).toFixed(1)} ms`,
      `${Math.round(rss)} MB`,
      `${Math.round((await storeBytes(stage.redisUrl)) / projects)} B`,
      `${Math.round(scraped)} ms (${before} requests to start)`,
    ];
  } finally {
    await stage.close();
  }
}

function lateMs(patches: readonly Seen[], boundaryMs: number, share: number): number {
  const late = patches.map(({ atMs }) => atMs - boundaryMs);
  return Math.round(percentile(late, share));
}

/** The PATCHes from this boundary on, and the CPU of the daemon from its preparation until they are made. */
async function changesAt(
  stage: Stage,
  boundaryMs: number,
  projects: number,
): Promise<{ patches: Seen[]; cpuMs: number }> {
  const deadlineMs = boundaryMs + 30_000 + projects * 10;
  let patches: Seen[] = [];
  await sleep(Math.max(0, boundaryMs - HEAD_START_MS - Date.now()));
  const cpuBefore = await cpuSeconds(stage.daemon);
  while (patches.length < projects && Date.now() < deadlineMs) {
    // Seldom: a long list costs the platform time that the daemon is waiting for.
    await sleep(2_000);
    patches = (await patchesOf(stage)).filter(({ atMs }) => atMs >= boundaryMs);
  }
  return { patches, cpuMs: ((await cpuSeconds(stage.daemon)) - cpuBefore) * 1000 };
}

/** What a fleet without change costs in a minute. */
async function measureQuiet(): Promise<void> {
  const stage = await startDaemon({
    projects: 1_000,
    perMinute: UNLIMITED,
    policy: boundaryAt(Date.now() + 3_600_000),
  });
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

export function boundaryAt(ms: number, nextMs = ms + 3_600_000): string {
  const iso = (at: number) => new Date(Math.ceil(at / 1000) * 1000).toISOString().replace('.000', '');
  return `version: 1
policies:
  - name: bigger
    kind: schedule
    select: { projects: ["*"] }
    windows:
      - { at: ${iso(ms)}/${iso(nextMs)}, size: 1-2, suspend_after: 10m }
      - { at: ${iso(nextMs)}/${iso(nextMs + 3_600_000)}, size: 2-3, suspend_after: 11m }
    otherwise: leave
    disruption: { raise: { when: any } }
`;
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
