import type { Job, JobCounts, JobData, JobHandler, JobQueue, QueueName } from '../../../src/ports/job-queue.ts';
import type { SteppedClock } from './clock.ts';

/** Before a job is given to the same handler again that has left it, in milliseconds. */
const LEFT_MS = 1_000;

const NO_JOBS: JobCounts = { waiting: 0, active: 0, delayed: 0, failed: 0 };

/** The queue of one daemon, in memory, on the time of a test. What fails is an error of the test. */
export function createMemoryQueue(clock: SteppedClock): JobQueue {
  const handlers = new Map<QueueName, JobHandler>();
  const scheduled = new Set<QueueName>();
  const delayed = new Map<string, () => void>();
  const known = new Set<string>();
  const waiting = new Set<string>();
  const active = new Map<string, JobData | undefined>();
  const rounds: { close(): Promise<void> }[] = [];
  const stop = new AbortController();

  async function run(job: Job): Promise<void> {
    const handler = handlers.get(job.queue);
    if (!handler || stop.signal.aborted) return;
    const outcome = await handler(job, stop.signal).catch((error) => {
      if (stop.signal.aborted) return { kind: 'done' as const };
      throw error;
    });
    if (outcome.kind === 'done') return;
    const atMs = outcome.kind === 'again' ? outcome.atMs : clock.now() + LEFT_MS;
    await clock.sleepUntil(atMs, stop.signal).then(
      () => run(job),
      () => {},
    );
  }

  /** One of a key at a time; those that come meanwhile are one that follows. */
  async function runKey(queue: QueueName, key: string, data: JobData): Promise<void> {
    const id = `${queue}/${key}`;
    if (active.has(id)) {
      active.set(id, data);
      return;
    }
    active.set(id, undefined);
    await run({ queue, id: key, data });
    const next = active.get(id);
    active.delete(id);
    if (next) await runKey(queue, key, next);
  }

  return {
    async every(queue, intervalMs) {
      if (scheduled.has(queue)) return;
      scheduled.add(queue);
      rounds.push(clock.every(intervalMs, () => runKey(queue, 'tick', {})));
    },
    async addAt(queue, { id, atMs, data }) {
      const key = `${queue}/${id}`;
      if (known.has(key)) return;
      known.add(key);
      const begin = () => {
        delayed.delete(key);
        void run({ queue, id, data });
      };
      delayed.set(key, clock.at(atMs, begin));
    },
    async add(queue, { key, atMs = clock.now(), data }) {
      const id = `${queue}/${key}/${atMs}`;
      if (waiting.has(id)) return;
      waiting.add(id);
      const begin = () => {
        waiting.delete(id);
        void runKey(queue, key, data);
      };
      clock.at(atMs, begin);
    },
    async delayedIds(queue) {
      return [...delayed.keys()].filter((key) => key.startsWith(`${queue}/`)).map((key) => key.slice(queue.length + 1));
    },
    async remove(queue, id) {
      delayed.get(`${queue}/${id}`)?.();
      delayed.delete(`${queue}/${id}`);
      known.delete(`${queue}/${id}`);
    },
    counts: async () => ({
      ...{ inventory: NO_JOBS, boundaries: NO_JOBS, crossings: NO_JOBS, reconcile: NO_JOBS, operations: NO_JOBS },
    }),
    async work(queue, handler) {
      handlers.set(queue, handler);
    },
    pause: async () => {},
    resume: async () => {},
    async close() {
      stop.abort();
      for (const cancel of delayed.values()) cancel();
      await Promise.all(rounds.map((round) => round.close()));
    },
  };
}
