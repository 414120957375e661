/** BullMQ alone at a boundary: as many jobs at one instant as the fleet has projects, which do nothing. */
import { Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';

/** As many as a daemon adds, and works, at a time. */
const CONCURRENCY = 32;

export interface BareQueue {
  /** From the instant to the start of each job, in milliseconds. */
  lateMs: number[];
  /** Of the whole process, adding and working. */
  cpuMsPerJob: number;
}

export async function crossWithNothing(redisUrl: string, jobs: number): Promise<BareQueue> {
  const connection = new Redis(redisUrl, { maxRetriesPerRequest: null });
  const queue = new Queue('bare', { connection });
  const lateMs: number[] = [];
  let instantMs = 0;
  let finish = () => {};
  const finished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const work = async () => {
    if (lateMs.push(performance.now() - instantMs) === jobs) finish();
  };
  const worker = new Worker('bare', work, { connection, concurrency: CONCURRENCY });
  try {
    await Promise.all([queue.waitUntilReady(), worker.waitUntilReady()]);
    const before = process.cpuUsage();
    instantMs = performance.now();
    let next = 0;
    const add = async () => {
      while (next < jobs) {
        next += 1;
        await queue.add('work', {}, { removeOnComplete: true });
      }
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, add));
    await finished;
    const { user, system } = process.cpuUsage(before);
    return { lateMs, cpuMsPerJob: (user + system) / 1000 / jobs };
  } finally {
    await Promise.all([worker.close(), queue.close()]);
    connection.disconnect();
  }
}
