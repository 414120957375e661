import { systemClock } from '../src/adapters/clock/system-clock.ts';
import { createJobQueue } from '../src/adapters/queue/job-queue.ts';
import type { Engine } from '../src/ports/engine.ts';
import type { JobQueue } from '../src/ports/job-queue.ts';
import { embeddedFolder } from '../test/support/embedded-folder.ts';
import { openTestEngine } from '../test/support/engines.ts';
import { memoryLog } from '../test/support/memory-log.ts';
import { startPostgresServer } from '../test/support/postgres-server.ts';
import { findProgram, missing, type Requirement } from '../test/support/programs.ts';
import { startRedisServer } from '../test/support/redis-server.ts';
import { percentile, printTable } from './figures.ts';

const JOBS = 1_000;
const CONCURRENCY = 10;
const LOOKS = 50;

interface Figures {
  name: string;
  addsPerSecond: number;
  jobsPerSecond: number;
  /** From the call of `add` on an idle queue to the start of its handler, the median. */
  pickupMs: number;
}

type Place = { url: string; close(): Promise<void> };

const ENGINES: readonly { name: string; needs?: Requirement; start(): Promise<Place> }[] = [
  { name: 'Redis', needs: 'redis-server', start: startRedisServer },
  { name: 'Postgres', needs: 'postgres', start: startPostgresServer },
  {
    name: 'embedded',
    start: async () => {
      const { path, remove } = await embeddedFolder();
      return { url: `embedded:${path}`, close: remove };
    },
  },
];

/** How many jobs each engine takes and works, and how soon it starts one, against Redis. */
export async function run(): Promise<void> {
  const all: Figures[] = [];
  for (const { name, needs, start } of ENGINES) {
    if (needs !== undefined && findProgram(needs) === undefined) {
      process.stdout.write(`${name} is left out: ${missing(needs)}\n`);
      continue;
    }
    const place = await start();
    const { engine } = await openTestEngine(place.url);
    try {
      all.push({ name, ...(await measure(engine)) });
    } finally {
      await engine.close();
      await place.close();
    }
  }
  const [first] = all;
  const ratio = (value: number, of: number | undefined) => `× ${(value / (of ?? value)).toFixed(2)}`;
  printTable(
    ['engine', `${JOBS} adds`, 'ratio', `${JOBS} jobs, concurrency ${CONCURRENCY}`, 'ratio', 'add to start', 'ratio'],
    all.map(({ name, addsPerSecond, jobsPerSecond, pickupMs }) => [
      name,
      `${addsPerSecond.toFixed(0)}/s`,
      ratio(addsPerSecond, first?.addsPerSecond),
      `${jobsPerSecond.toFixed(0)}/s`,
      ratio(jobsPerSecond, first?.jobsPerSecond),
      `${pickupMs.toFixed(1)} ms`,
      ratio(pickupMs, first?.pickupMs),
    ]),
  );
}

async function measure(engine: Engine): Promise<Omit<Figures, 'name'>> {
  const queue = createJobQueue({ engine, clock: systemClock(), log: memoryLog(), onFailed: () => {} });
  try {
    const addMs = await timed(async () => {
      for (let i = 0; i < JOBS; i += 1) await queue.add('reconcile', { key: `p-${i}`, data: { projectId: `p-${i}` } });
    });
    const workMs = await timed(() => workAll(queue));
    return {
      addsPerSecond: (JOBS / addMs) * 1000,
      jobsPerSecond: (JOBS / workMs) * 1000,
      pickupMs: await pickup(queue),
    };
  } finally {
    await queue.close(5_000);
  }
}

function workAll(queue: JobQueue): Promise<void> {
  return new Promise((resolve, reject) => {
    let done = 0;
    const handler = async () => {
      done += 1;
      if (done === JOBS) resolve();
      return { kind: 'done' as const };
    };
    queue.work('reconcile', handler, { concurrency: CONCURRENCY }).catch(reject);
  });
}

async function pickup(queue: JobQueue): Promise<number> {
  let started = (_atMs: number) => {};
  await queue.work(
    'operations',
    async () => {
      started(performance.now());
      return { kind: 'done' };
    },
    { concurrency: 1 },
  );
  const times: number[] = [];
  for (let i = 0; i < LOOKS; i += 1) {
    const start = new Promise<number>((resolve) => {
      started = resolve;
    });
    const addedMs = performance.now();
    await queue.add('operations', { key: `look-${i}`, data: {} });
    times.push((await start) - addedMs);
  }
  return percentile(times, 0.5);
}

async function timed(work: () => Promise<void>): Promise<number> {
  const startedMs = performance.now();
  await work();
  return performance.now() - startedMs;
}
