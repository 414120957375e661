import { setMaxListeners } from 'node:events';
import { type Job as BullJob, DelayedError, type IQueueBackend, WaitingError, Worker } from 'bullmq';
import { RECOVERY } from '../../domain/records/recovery-times.ts';
import { type Clock, timerMs } from '../../ports/clock.ts';
import type { Job, JobData, JobHandler, JobOutcome, JobQueue, QueueName } from '../../ports/job-queue.ts';
import type { QueueBackend } from './backend.ts';

/** How soon the jobs of a daemon that died come back, in real time. */
export interface Recovery {
  /** How long a job belongs to a worker that shows no sign of life. */
  lockDurationMs: number;
  /** How often jobs are looked for whose worker is dead; it takes two looks. */
  stalledIntervalMs: number;
}

export const DEFAULT_RECOVERY: Recovery = {
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
export function createWorkers({ backend, clock, recovery, onError, onFailed, onTick }: WorkersOptions): Workers {
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
 * What a worker does with a job. A tick only adds the real job, deduplicated, and ends: a scheduler's own jobs can't be
 * deduplicated, so that one which outlives its interval would overlap with the next.
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
export const TICK = 'tick';

/** Every other job. */
export const WORK = 'work';
