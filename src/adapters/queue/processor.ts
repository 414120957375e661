import { type Job as BullJob, DelayedError, WaitingError } from 'bullmq';
import type { Clock } from '../../ports/clock.ts';
import type { Job, JobData, JobHandler, QueueName } from '../../ports/job-queue.ts';
import { TICK } from './job-names.ts';

export type EbbJob = BullJob<JobData, unknown, string>;

export interface ProcessorOptions {
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
export async function processJob(job: EbbJob, token: string | undefined, options: ProcessorOptions): Promise<void> {
  const { queue, handler, clock, signal, onTick } = options;
  if (job.name === TICK) return onTick(queue);
  try {
    const outcome = await handler(toJob(queue, job), signal);
    if (outcome.kind === 'done') return;
    if (outcome.kind === 'left') return await leave(job, token);
    await job.moveToDelayed(Date.now() + Math.ceil(clock.realDelayMs(outcome.atMs)), token);
  } catch (error) {
    if (!signal.aborted) throw error;
    // Stopped in the middle by the shutdown: that is no failure.
    return leave(job, token);
  }
  throw new DelayedError();
}

/** The next worker takes it up again. */
async function leave(job: EbbJob, token: string | undefined): Promise<never> {
  await job.moveToWait(token);
  throw new WaitingError();
}

export function toJob(queue: QueueName, job: EbbJob): Job {
  return { queue, id: job.id ?? '', data: job.data };
}
