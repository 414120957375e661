import { type IQueueBackend, Queue } from 'bullmq';
import type { Clock } from '../../ports/clock.ts';
import type { Engine } from '../../ports/engine.ts';
import {
  type Job,
  type JobCounts,
  type JobData,
  type JobQueue,
  QUEUE_NAMES,
  type QueueName,
} from '../../ports/job-queue.ts';
import type { Log } from '../../ports/telemetry.ts';
import { createQueueBackend, type QueueBackend } from './backend.ts';
import { createWorkers, DEFAULT_RECOVERY, type Recovery, TICK, WORK } from './workers.ts';

/** Known ids are remembered for this long after their job completed, in seconds. */
const COMPLETED_KEPT_SECONDS = 3600;

interface JobQueueOptions {
  engine: Engine;
  clock: Clock;
  log: Log;
  /** Called for every job whose handler threw; the job is gone already. */
  onFailed(queue: QueueName, job: Job, error: Error): void;
  /** Those of `RECOVERY` by default. */
  recovery?: Recovery;
}

/** The job queues, on BullMQ. Close it before the engine. */
export function createJobQueue(options: JobQueueOptions): JobQueue {
  const { engine, clock, log, onFailed, recovery = DEFAULT_RECOVERY } = options;
  const backend = createQueueBackend(engine);
  const errors = createErrorLog({ engine, log });
  const queues = openQueues({ backend, onError: errors.report });

  const workers = createWorkers({
    backend,
    clock,
    recovery,
    onError: errors.report,
    onFailed,
    // Not kept while one runs: a run that outlives its interval is followed by the next tick's.
    onTick: async (queue) => {
      await queues
        .get(queue)
        .add(WORK, {}, { deduplication: { id: TICK }, removeOnComplete: true, removeOnFail: true });
    },
  });

  return engine.guard<JobQueue>({
    every: async (queue, intervalMs) => {
      const opts = { removeOnComplete: true, removeOnFail: true };
      await queues.get(queue).upsertJobScheduler(TICK, { every: intervalMs }, { name: TICK, data: {}, opts });
    },
    addAt: async (queue, { id, atMs, data }) => {
      const removeOnComplete = { age: COMPLETED_KEPT_SECONDS };
      const delay = Math.ceil(clock.realDelayMs(atMs));
      await queues.get(queue).add(WORK, data, { jobId: id, delay, removeOnComplete, removeOnFail: true });
    },
    add: async (queue, { key, atMs, data }) => {
      const deduplication = { id: key, keepLastIfActive: true };
      const delay = atMs === undefined ? 0 : Math.ceil(clock.realDelayMs(atMs));
      await queues.get(queue).add(WORK, data, { deduplication, delay, removeOnComplete: true, removeOnFail: true });
    },
    delayedIds: async (queue) => {
      const ids = await queues.get(queue).getRanges(['delayed']);
      // BullMQ names a scheduler's own jobs so.
      return ids.filter((id) => !id.startsWith('repeat:'));
    },
    remove: async (queue, id) => {
      const state = await queues.get(queue).getJobState(id);
      if (state === 'delayed' || state === 'waiting') await queues.get(queue).remove(id);
    },
    counts: async () => {
      const counts: [QueueName, JobCounts][] = [];
      for (const queue of QUEUE_NAMES) {
        const { waiting = 0, active = 0, delayed = 0, failed = 0 } = await queues.get(queue).getJobCounts();
        counts.push([queue, { waiting, active, delayed, failed }]);
      }
      return Object.fromEntries(counts) as Record<QueueName, JobCounts>;
    },
    work: workers.work,
    pause: workers.pause,
    resume: workers.resume,
    close: async (graceMs) => {
      await workers.close(graceMs);
      await queues.close();
    },
  });
}

/** How long an error that is the same as before stays unsaid. */
const QUIET_MS = 60_000;
const MOST_REMEMBERED = 100;

interface ErrorLog {
  report(error: Error): void;
}

/**
 * Says each error of BullMQ once a minute at most, whichever job it is about, and none that only says that the engine is away: the engine
 * does, once. A process that was stalled loses the locks of all its jobs, and BullMQ names each of them every second.
 */
export function createErrorLog({ engine, log }: { engine: Pick<Engine, 'isAway'>; log: Log }): ErrorLog {
  const loggedAtMs = new Map<string, number>();
  return {
    report: (error) => {
      if (engine.isAway(error)) return;
      const nowMs = performance.now();
      const about = error.message.replace(/\bjob \S+/, 'job');
      const lastMs = loggedAtMs.get(about);
      if (lastMs !== undefined && nowMs - lastMs < QUIET_MS) return;
      if (loggedAtMs.size >= MOST_REMEMBERED) loggedAtMs.clear();
      loggedAtMs.set(about, nowMs);
      log.warn({ err: error }, 'queue error');
    },
  };
}

/** BullMQ writes a line for each event of each job, which nobody here reads. */
const EVENTS_KEPT = 100;

type EbbQueue = Queue<JobData, unknown, string, JobData, unknown, string, IQueueBackend>;

interface Queues {
  get(name: QueueName): EbbQueue;
  close(): Promise<void>;
}

interface QueuesOptions {
  backend: QueueBackend;
  onError(error: Error): void;
}

/**
 * The producing side of BullMQ: one Queue per name. All are opened at once, while the engine is known to be up: a Queue that is
 * made during an outage waits for its end with every call.
 */
function openQueues({ backend, onError }: QueuesOptions): Queues {
  const { connection, createBackend } = backend.forQueues;
  const options = { connection, prefix: backend.prefix, streams: { events: { maxLen: EVENTS_KEPT } } };

  function open(name: QueueName): EbbQueue {
    const queue: EbbQueue = new Queue(name, options, createBackend);
    queue.on('error', onError);
    return queue;
  }

  const queues: Record<QueueName, EbbQueue> = {
    inventory: open('inventory'),
    boundaries: open('boundaries'),
    crossings: open('crossings'),
    reconcile: open('reconcile'),
    operations: open('operations'),
  };
  return {
    get: (name) => queues[name],
    close: async () => {
      await Promise.allSettled(Object.values(queues).map((queue) => queue.close()));
    },
  };
}
