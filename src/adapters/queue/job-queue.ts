import { setMaxListeners } from 'node:events';
import { type Job as BullJob, DelayedError, type IQueueBackend, Queue, WaitingError, Worker } from 'bullmq';
import { RECOVERY } from '../../domain/records/recovery-times.ts';
import { type Clock, timerMs } from '../../ports/clock.ts';
import type { Engine } from '../../ports/engine.ts';
import {
  type Job,
  type JobCounts,
  type JobData,
  type JobHandler,
  type JobOutcome,
  type JobQueue,
  QUEUE_NAMES,
  type QueueName,
} from '../../ports/job-queue.ts';
import type { Log } from '../../ports/telemetry.ts';
import { createQueueBackend, type QueueBackend } from './backend.ts';

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

/** Within this time a repeated error is not logged again. */
const QUIET_MS = 60_000;
const MOST_REMEMBERED = 100;

interface ErrorLog {
  report(error: Error): void;
}

/**
 * Logs each error of BullMQ once a minute at most, whichever job it is about, and none that only means that the engine is away: the engine
 * reports that once. A process that was stalled loses the locks of all its jobs, and BullMQ names each of them every second.
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

/** BullMQ keeps a line for each event of each job; ebb reads none. */
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

/** How soon jobs of a dead daemon are taken up again, in real time. */
interface Recovery {
  /** A worker that shows no sign of life loses its job after this time. */
  lockDurationMs: number;
  /** Interval of the search for stalled jobs; a job is taken after two of them. */
  stalledIntervalMs: number;
}

const DEFAULT_RECOVERY: Recovery = {
  lockDurationMs: RECOVERY.jobLockMs,
  stalledIntervalMs: RECOVERY.stalledJobsMs,
};
/** A job is only ever a trigger, so one that daemons die of must not vanish too soon; ten deaths are no accident. */
const MAX_STALLED_COUNT = 10;

type EbbWorker = Worker<JobData, void, string, IQueueBackend>;

interface WorkersOptions {
  backend: QueueBackend;
  clock: Clock;
  recovery: Recovery;
  onError(error: Error): void;
  onFailed(queue: QueueName, job: Job, error: Error): void;
  onTick(queue: QueueName): Promise<void>;
}

type Workers = Pick<JobQueue, 'work' | 'pause' | 'resume' | 'close'>;

/** The working side of BullMQ: one Worker per queue. */
function createWorkers({ backend, clock, recovery, onError, onFailed, onTick }: WorkersOptions): Workers {
  const workers: EbbWorker[] = [];
  /** The jobs under way. Each has a signal of its own: listeners on one long-lived signal would pile up. */
  const running = new Map<AbortController, Promise<void>>();
  let stopping = false;

  async function work(queue: QueueName, handler: JobHandler, { concurrency }: { concurrency: number }) {
    const { connection, createBackend } = backend.forWorkers;
    const process = async (job: EbbJob, token?: string) => {
      const controller = new AbortController();
      // A job may have many calls under way.
      setMaxListeners(0, controller.signal);
      if (stopping) controller.abort();
      const processing = processJob(job, token, { queue, handler, clock, signal: controller.signal, onTick });
      running.set(
        controller,
        processing.catch(() => {}),
      );
      return processing.finally(() => running.delete(controller));
    };
    const options = {
      connection,
      prefix: backend.prefix,
      concurrency,
      lockDuration: recovery.lockDurationMs,
      stalledInterval: recovery.stalledIntervalMs,
      maxStalledCount: MAX_STALLED_COUNT,
    };
    const worker: EbbWorker = new Worker(queue, process, options, createBackend);
    worker.on('error', onError);
    worker.on('failed', (job, error) => {
      if (job !== undefined) onFailed(queue, toJob(queue, job), error);
    });
    workers.push(worker);
    await worker.waitUntilReady();
  }

  const workersOf = (queue: QueueName) => workers.filter(({ name }) => name === queue);

  // A worker that only stopped fetching would still swallow the signal that there is a job.
  const pause = async (queue: QueueName) => void (await Promise.all(workersOf(queue).map((worker) => worker.pause())));

  const resume = async (queue: QueueName) =>
    void (await Promise.all(workersOf(queue).map((worker) => worker.resume())));

  let closing: Promise<void> | undefined;
  const close = (graceMs: number) => {
    closing ??= closeWorkers(graceMs);
    return closing;
  };

  async function closeWorkers(graceMs: number): Promise<void> {
    const grace = startGrace(graceMs);
    // Paused first: a closing worker can't be told any more not to wait for its jobs.
    await Promise.all(workers.map((worker) => worker.pause(true)));
    stopping = true;
    for (const controller of running.keys()) controller.abort();
    await Promise.race([Promise.all(running.values()), grace.over]);
    const force = running.size > 0 || !backend.isUp();
    await Promise.race([Promise.allSettled(workers.map((worker) => worker.close(force))), grace.over]);
    grace.cancel();
  }

  return { work, pause, resume, close };
}

function startGrace(graceMs: number): { over: Promise<void>; cancel: () => void } {
  let cancel = () => {};
  const over = new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, timerMs(graceMs));
    cancel = () => clearTimeout(timer);
  });
  return { over, cancel };
}

type EbbJob = BullJob<JobData, unknown, string>;

interface ProcessorOptions {
  queue: QueueName;
  handler: JobHandler;
  clock: Clock;
  signal: AbortSignal;
  onTick(queue: QueueName): Promise<void>;
}

/**
 * Runs a job. A tick only adds the real job, deduplicated: a scheduler's own jobs can't be deduplicated, so a job that outlives its
 * interval would overlap with the next.
 */
async function processJob(job: EbbJob, token: string | undefined, options: ProcessorOptions): Promise<void> {
  const { queue, handler, clock, signal, onTick } = options;
  if (job.name === TICK) return onTick(queue);
  const outcome = await outcomeOf(toJob(queue, job), handler, signal);
  if (outcome.kind === 'done') return;
  if (outcome.kind === 'left') {
    await job.moveToWait(token);
    throw new WaitingError();
  }
  await job.moveToDelayed(Date.now() + Math.ceil(clock.realDelayMs(outcome.atMs)), token);
  throw new DelayedError();
}

/** A job that was stopped in the middle by the shutdown has not failed: the next daemon takes it again. */
async function outcomeOf(job: Job, handler: JobHandler, signal: AbortSignal): Promise<JobOutcome> {
  try {
    return await handler(job, signal);
  } catch (error) {
    if (!signal.aborted) throw error;
    return { kind: 'left' };
  }
}

function toJob(queue: QueueName, job: EbbJob): Job {
  return { queue, id: job.id ?? '', data: job.data };
}

/** Jobs that a scheduler makes; they only add the real job. */
const TICK = 'tick';

/** Every other job. */
const WORK = 'work';
