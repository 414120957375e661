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

/** An id can't be added again for this long after its job completed. */
const COMPLETED_KEPT_SECONDS = 3600;

/** The options of jobs that are removed as soon as they end. */
const REMOVED = { removeOnComplete: true, removeOnFail: true };

/** The job queues, on BullMQ. Close it before the engine. */
export function createJobQueue(options: {
  engine: Engine;
  clock: Clock;
  log: Log;
  /** Called for every job whose handler threw; the job is already removed. */
  onFailed(queue: QueueName, job: Job, error: Error): void;
  recovery?: Recovery;
}): JobQueue {
  const { engine, clock, log, onFailed, recovery = DEFAULT_RECOVERY } = options;
  const backend = createQueueBackend(engine);
  const onError = createErrorLog({ engine, log });
  const queues = openQueues({ backend, onError });

  const workers = createWorkers({
    backend,
    clock,
    recovery,
    onError,
    onFailed,
    // If the job of an earlier tick still exists, BullMQ drops this one; the next tick adds another.
    onTick: async (queue) => {
      await queues.get(queue).add(WORK, {}, { deduplication: { id: TICK }, ...REMOVED });
    },
  });

  return engine.translateOutages<JobQueue>({
    every: async (queue, intervalMs) => {
      await queues.get(queue).upsertJobScheduler(TICK, { every: intervalMs }, { name: TICK, data: {}, opts: REMOVED });
    },
    addAt: async (queue, { id, atMs, data }) => {
      const removeOnComplete = { age: COMPLETED_KEPT_SECONDS };
      const delay = Math.ceil(clock.realDelayMs(atMs));
      await queues.get(queue).add(WORK, data, { jobId: id, delay, removeOnComplete, removeOnFail: true });
    },
    add: async (queue, { key, atMs, data }) => {
      const deduplication = { id: key, keepLastIfActive: true };
      const delay = atMs === undefined ? 0 : Math.ceil(clock.realDelayMs(atMs));
      await queues.get(queue).add(WORK, data, { deduplication, delay, ...REMOVED });
    },
    delayedIds: async (queue) => {
      const ids = await queues.get(queue).getRanges(['delayed']);
      // BullMQ's own jobs of schedulers have ids with this prefix.
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

/** BullMQ's messages about a job whose lock has expired. */
const LOST_LOCK = /^(could not renew lock|Missing lock)/;
const WHY_LOST =
  'this process was stalled, or the queue was away; the job may run again, which changes nothing twice, since leases guard each write';

/** A repeated error is logged again only after this time. */
const QUIET_MS = 60_000;
const MAX_REMEMBERED = 100;

/**
 * Logs the same error of BullMQ at most once a minute for all jobs together. A process that was stalled loses the locks of all its jobs, and
 * BullMQ then reports each of them every second. The errors of an outage are not logged here: the engine reports the outage.
 */
export function createErrorLog({ engine, log }: { engine: Pick<Engine, 'isUnavailable'>; log: Log }) {
  const loggedAtMs = new Map<string, number>();
  return (error: Error): void => {
    if (engine.isUnavailable(error)) return;
    const nowMs = performance.now();
    const messageOfAnyJob = error.message.replace(/\bjob \S+/, 'job');
    const lastMs = loggedAtMs.get(messageOfAnyJob);
    if (lastMs !== undefined && nowMs - lastMs < QUIET_MS) return;
    if (loggedAtMs.size >= MAX_REMEMBERED) loggedAtMs.clear();
    loggedAtMs.set(messageOfAnyJob, nowMs);
    if (LOST_LOCK.test(error.message)) log.warn({ event: 'ebb.queue_error' }, `${error.message}: ${WHY_LOST}`);
    else log.warn({ event: 'ebb.queue_error', err: error }, 'queue error');
  };
}

/** The entries that BullMQ keeps in its event log, which ebb doesn't read. */
const EVENTS_KEPT = 100;

type EbbQueue = Queue<JobData, unknown, string, JobData, unknown, string, IQueueBackend>;

/**
 * The producing side of BullMQ: one Queue per name. All are opened at once, while the engine is known to be up: a Queue that is opened during
 * an outage would let its calls wait until the outage ends.
 */
function openQueues({ backend, onError }: { backend: QueueBackend; onError(error: Error): void }) {
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
    get: (name: QueueName) => queues[name],
    close: async (): Promise<void> => {
      await Promise.allSettled(Object.values(queues).map((queue) => queue.close()));
    },
  };
}

/** The recovery of jobs of a dead daemon, in real time. */
interface Recovery {
  /** A worker that doesn't renew its lock loses its job after this time. */
  lockDurationMs: number;
  /** Interval of the search for stalled jobs. One search marks a job, the next gives it to another worker. */
  stalledIntervalMs: number;
}

const DEFAULT_RECOVERY: Recovery = {
  lockDurationMs: RECOVERY.jobLockMs,
  stalledIntervalMs: RECOVERY.stalledJobsMs,
};
/** A job is dropped when more daemons than this have died while they ran it. */
const MAX_STALLED_COUNT = 10;

type EbbWorker = Worker<JobData, void, string, IQueueBackend>;

/** The working side of BullMQ: one Worker per queue. */
function createWorkers(options: {
  backend: QueueBackend;
  clock: Clock;
  recovery: Recovery;
  onError(error: Error): void;
  onFailed(queue: QueueName, job: Job, error: Error): void;
  onTick(queue: QueueName): Promise<void>;
}): Pick<JobQueue, 'work' | 'pause' | 'resume' | 'close'> {
  const { backend, clock, recovery, onError, onFailed, onTick } = options;
  const workers: EbbWorker[] = [];
  /** Each job has a signal of its own, since listeners on one long-lived signal would pile up. */
  const running = new Map<AbortController, Promise<void>>();
  let isStopping = false;

  async function work(queue: QueueName, handler: JobHandler, { concurrency }: { concurrency: number }) {
    const { connection, createBackend } = backend.forWorkers;
    const process = async (job: EbbJob, token?: string) => {
      const controller = new AbortController();
      // Each request that the job has in flight adds a listener.
      setMaxListeners(0, controller.signal);
      if (isStopping) controller.abort();
      const processing = processJob(job, token, { queue, handler, clock, signal: controller.signal, onTick });
      running.set(
        controller,
        processing.catch(() => {}),
      );
      return processing.finally(() => running.delete(controller));
    };
    const workerOptions = {
      connection,
      prefix: backend.prefix,
      concurrency,
      lockDuration: recovery.lockDurationMs,
      stalledInterval: recovery.stalledIntervalMs,
      maxStalledCount: MAX_STALLED_COUNT,
    };
    const worker: EbbWorker = new Worker(queue, process, workerOptions, createBackend);
    worker.on('error', onError);
    worker.on('failed', (job, error) => {
      if (job !== undefined) onFailed(queue, toJob(queue, job), error);
    });
    workers.push(worker);
    await worker.waitUntilReady();
  }

  const workersOf = (queue: QueueName) => workers.filter(({ name }) => name === queue);

  // A pause also ends the worker's blocking call. Otherwise the call would take the marker that tells another daemon's worker of a new job.
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
    // First a pause that does not wait for jobs, since closing a worker always waits for them.
    await Promise.all(workers.map((worker) => worker.pause(true)));
    isStopping = true;
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

/**
 * Runs a job. A scheduler's job (a tick) only adds the real job. Jobs of a scheduler can't be deduplicated, so a job that outlives its
 * interval would overlap with the next; the real job is deduplicated.
 */
async function processJob(
  job: EbbJob,
  token: string | undefined,
  options: {
    queue: QueueName;
    handler: JobHandler;
    clock: Clock;
    signal: AbortSignal;
    onTick(queue: QueueName): Promise<void>;
  },
): Promise<void> {
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

/** A job that the shutdown has interrupted is left to the next daemon. */
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

/** The name of a scheduler's jobs. */
const TICK = 'tick';
/** The name of all other jobs. */
const WORK = 'work';
